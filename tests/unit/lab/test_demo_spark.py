"""Settings of Spark in the demo."""

from lab.demo.stack import spark_environ
from pipeline.spark_settings import configured


def test_spark_interprets_its_queries(monkeypatch):
    """It reads these settings where the variable says."""
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)

    assert "false" == configured(spark_environ())["spark.sql.codegen.wholeStage"]


def test_the_settings_of_the_user_win(monkeypatch):
    """The demo adds none."""
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")

    assert {} == spark_environ()
