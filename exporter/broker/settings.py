"""How to reach one cluster's management API."""

from dataclasses import replace
from pathlib import Path

from pydantic import Field, SecretStr, field_serializer

from ackscope.address import Address, parse_management
from ackscope.log import redact
from ackscope.settings import Seconds, Settings, secret


class ManagementSettings(Settings):
    """Where the management API listens, and who asks.

    Attributes:
        url: such as `http://host:15672`; a path is a prefix. User and password may be in it.
        username: instead of the one in the URL.
        password: instead of the one in the URL.
        password_file: a file whose first line is the password; wins over `password`.
        ca_file: certificates to trust instead of the system's.
        verify: False trusts any certificate.
        timeout: seconds for one request, from its first byte to the last of its answer; connecting has its own,
            shorter limit.
    """

    url: str = Field(repr=False)
    username: str | None = None
    password: SecretStr | None = None
    password_file: Path | None = None
    ca_file: Path | None = None
    verify: bool = True
    timeout: Seconds = Field(default=10.0, gt=0, le=600)

    @field_serializer("url")
    def _without_password(self, url: str) -> str:
        return redact(url)

    def address(self, what: str = "management") -> Address:
        """The address with its credentials resolved.

        Args:
            what: how to call these settings in a message, such as `clusters.shop.management`.

        Raises:
            UsageError: the URL is not an address of a management API.
            ConfigError: the password file cannot be read.
        """
        address = parse_management(self.url, what=f"{what}.url")
        password = secret(self.password, self.password_file, f"{what}.password_file")
        return replace(
            address,
            username=address.username if self.username is None else self.username,
            password=address.password if password is None else password,
        )
