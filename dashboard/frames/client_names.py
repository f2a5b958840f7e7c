"""Names of clients, as findings use them."""

import pandas as pd


def client_names(connections: pd.DataFrame) -> pd.Series:
    """The client of each row with `name`, `client_name`, `user`, `peer_host`: its name, else `user@host`.

    The name of the connection, if the host or the user is unknown.
    """
    text = connections[["name", "client_name", "user", "peer_host"]].astype(object)
    text = text.where(text.notna(), "").astype(str)
    origin = (text["user"] + "@" + text["peer_host"]).where(
        text["user"].ne("") & text["peer_host"].ne(""), text["name"]
    )
    return text["client_name"].where(text["client_name"].ne(""), origin)
