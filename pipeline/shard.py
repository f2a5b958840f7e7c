"""A shard of a fleet: the clusters that one job handles, so that several jobs share the work."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from pipeline.storage.digest import digest_of


@dataclass(frozen=True, slots=True)
class Shard:
    """The clusters whose names match one of the patterns, `*`, `?` and `[...]` as in a shell; all without patterns."""

    patterns: tuple[str, ...] = ()

    def __contains__(self, cluster: str) -> bool:
        return not self.patterns or any(fnmatchcase(cluster, pattern) for pattern in self.patterns)

    @property
    def suffix(self) -> str:
        """What distinguishes the files of this shard from those of others; "" for all clusters."""
        return f"-{digest_of(self.patterns)}" if self.patterns else ""

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """The shard of a comma-separated list of names and patterns.

        Raises:
            ValueError: the list has no names.
        """
        patterns = tuple(sorted({it.strip() for it in text.split(",")} - {""}))
        if not patterns:
            raise ValueError(f"invalid list of clusters {text!r}; use names or patterns, such as 'shop,eu-*'")
        return cls(patterns)


ALL = Shard()
