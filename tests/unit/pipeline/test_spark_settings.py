import pytest
from pyspark import SparkConf

from ackscope.errors import UsageError
from pipeline.session import _with_ours
from pipeline.spark_settings import (
    REQUIRED,
    check_master,
    check_same_master,
    configured,
    default_settings,
    driver_settings,
    is_local,
)


@pytest.mark.parametrize("master", [None, "local", "local[2]", "local[*]", "local[2,3]", "spark://h:7077", "yarn"])
def test_knows_masters(master):
    """Spark's masters are accepted; so is none, because others may have chosen one."""
    assert master == check_master(master)


@pytest.mark.parametrize("master", ["", "local[0]", "local[", "spark://", "yarn-client", "local[2] --conf x=y"])
def test_refuses_other_masters(master):
    """What Spark would reject after ten seconds, or misread, is rejected immediately."""
    with pytest.raises(UsageError):
        check_master(master)


def test_spark_submit_has_chosen_the_master():
    """The option may repeat it, and may not contradict it: one line says where to put it."""
    check_same_master(None, "yarn")
    check_same_master("yarn", "yarn")

    with pytest.raises(
        UsageError, match=r"--master local\[2\]: spark-submit has started this job with the master yarn"
    ):
        check_same_master("local[2]", "yarn")


@pytest.mark.parametrize(
    ("master", "local"),
    [
        ("local[2]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077", True),
        ("spark://10.0.0.1:7077", False),
        ("spark://spark-master:7077", False),
        ("yarn", False),
    ],
)
def test_only_what_runs_here_stays_on_loopback(master, local):
    """Workers elsewhere must reach the driver."""
    settings = default_settings(master)

    assert local == is_local(master)
    assert local == (settings.get("spark.driver.host") == settings.get("spark.driver.bindAddress") == "127.0.0.1")
    assert settings["spark.sql.streaming.stateStore.providerClass"].endswith("RocksDBStateStoreProvider")
    assert "false" == settings["spark.ui.enabled"]


def test_settings_of_an_administrator_are_read_as_java_reads_them(tmp_path):
    """Separators of three kinds, comments, values with spaces; the folder is the one that Spark reads."""
    text = "# spark.a 1\n! spark.b 2\n\nspark.executor.memory   3g\nspark.c=x y\n spark.d : z=1 \nspark.e\n"
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/spark-defaults.conf").write_text(text)
    wanted = {"spark.executor.memory": "3g", "spark.c": "x y", "spark.d": "z=1", "spark.e": ""}

    assert wanted == configured({"SPARK_HOME": str(tmp_path)})
    assert wanted == configured({"SPARK_HOME": "/nowhere", "SPARK_CONF_DIR": str(tmp_path / "conf")})
    assert {} == configured({"SPARK_HOME": str(tmp_path / "other")})


def test_a_file_that_cannot_be_read(tmp_path):
    """One line instead of other settings than those that the administrator has made."""
    (tmp_path / "spark-defaults.conf").mkdir()

    with pytest.raises(UsageError, match=r"spark-defaults.conf: cannot be read \(Is a directory\); fix it"):
        configured({"SPARK_CONF_DIR": str(tmp_path)})


def test_java_gets_one_collector(tmp_path):
    """With two it does not start."""
    name = "spark.driver.defaultJavaOptions"
    ours = driver_settings(tmp_path / "log", {}, cheap_code=False)[name]
    theirs = driver_settings(tmp_path / "log", {"spark.driver.extraJavaOptions": "-XX:+UseG1GC"}, cheap_code=True)[name]

    assert ("UseSerialGC" in ours, "UseSerialGC" in theirs) == (True, False)
    assert ("TieredStopAtLevel" in ours, "TieredStopAtLevel" in theirs) == (False, True)


def test_what_rows_depend_on_is_no_default():
    """A default can be replaced."""
    assert not REQUIRED.keys() & default_settings("local[2]").keys()


def test_what_was_given_wins_except_where_rows_depend_on_it():
    """A larger executor stays, another time zone does not."""
    given = {
        "spark.master": "yarn",
        "spark.executor.memory": "3g",
        "spark.ui.enabled": "true",
        "spark.sql.session.timeZone": "Europe/Berlin",
    }
    conf = _with_ours(SparkConf(loadDefaults=False).setAll(list(given.items())))

    assert default_settings("yarn") | given | REQUIRED == dict(conf.getAll())
    assert ("3g", "UTC") == (conf.get("spark.executor.memory"), conf.get("spark.sql.session.timeZone"))
