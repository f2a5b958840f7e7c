"""Settings of Spark in the demo."""

from lab.demo.stack import _interpreting
from pipeline.spark_settings import configured


def test_spark_interprets_its_queries(tmp_path, monkeypatch):
    """It reads these settings where the variable says."""
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)

    environ = _interpreting(tmp_path / "spark")

    assert "false" == configured(environ)["spark.sql.codegen.wholeStage"]


def test_the_settings_of_the_user_win(tmp_path, monkeypatch):
    """Nothing is written then."""
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")

    assert {} == _interpreting(tmp_path / "spark")
    assert [] == list(tmp_path.iterdir())
