"""What was seen of every metric, reading after reading."""

from exporter.exposition.specs import MetricType


class Moves:
    """Samples by metric and series, gathered over several readings."""

    def __init__(self):
        self._values = {}
        self._readings = 0

    def add(self, samples):
        """One reading: (name of the metric, what tells the series apart, value) of every sample."""
        self._readings += 1
        for name, series, value in samples:
            self._values.setdefault(name, {}).setdefault(series, []).append((self._readings, value))

    def lacking(self, specs):
        """Names of those that were never seen, and of those that were and did not move."""
        unseen = sorted(spec.name for spec in specs if spec.name not in self._values)
        unmoved = sorted(spec.name for spec in specs if spec.name in self._values and not self.moved(spec))
        return unseen, unmoved

    def moved(self, spec):
        """Whether one of its series changed its value; a metric whose labels say it all need only be there."""
        return constant(spec) or any(self._series_moved(spec, it) for it in self._values.get(spec.name, {}).values())

    def _series_moved(self, spec, readings):
        if len({value for _, value in readings}) > 1:
            return True
        (first, value), (last, _) = readings[0], readings[-1]
        if spec.kind is MetricType.COUNTER:
            # It came with its first event.
            return first > 1 and value > 0
        # A sign that is there or not: it came, or it went.
        return spec.help.startswith("1 for each") and (first > 1 or last < self._readings)


def constant(spec):
    """A metric whose labels say it all."""
    return "always 1" in spec.help.lower() or spec.name.endswith("_info")
