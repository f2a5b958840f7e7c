"""The exporter against its peers, its limits, growth, a hung node and an hour of churn."""
