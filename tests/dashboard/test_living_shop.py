import requests

from tests.dashboard.living_shop import living


def test_the_shop_of_the_pictures_is_served():
    """`tests.dashboard.pictures` shows it; nothing else starts it."""
    with living({"shop": 2, "lab": None}) as (_, url):
        served = requests.get(f"{url}/api/v1/findings", timeout=30).json()

    found = {each["cluster"]: len(each["findings"]) for each in served["clusters"]}
    assert {"shop": 2, "lab": 0} == found
