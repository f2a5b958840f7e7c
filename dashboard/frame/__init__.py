"""The frame of every page: navigation, cluster, time range, health light, search, time zone, theme and heading."""
