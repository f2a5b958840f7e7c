"""Settings of the OTLP export."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from ackscope.errors import AckscopeError
from ackscope.settings import Seconds, Settings, secret


class OtlpSettings(Settings):
    """Export of all metrics over OTLP/HTTP. Needs `ackscope[otlp]`; nothing is sent without an endpoint.

    Attributes:
        endpoint: address of the collector for metrics, such as `http://collector:4318/v1/metrics`.
        interval: how often the metrics are sent.
        headers: further headers of every request, treated as secrets.
        token_file: file whose first line is a bearer token; it is read at each export.
        ca_file: CA certificates to trust instead of the system's.
        attributes: further resource attributes, such as `deployment.environment.name`.
    """

    endpoint: str | None = None
    interval: Annotated[Seconds, Field(ge=5, le=3600)] = 60.0
    headers: dict[str, SecretStr] = Field(default={})
    token_file: Path | None = None
    ca_file: Path | None = None
    attributes: dict[str, str] = Field(default={})

    @field_validator("endpoint")
    @classmethod
    def _is_http(cls, value: str | None) -> str | None:
        if value is not None and (not value.startswith(("http://", "https://")) or "@" in value):
            raise ValueError("not an HTTP address without user and password, such as http://collector:4318/v1/metrics")
        return value

    @model_validator(mode="after")
    def _is_usable(self) -> Self:
        if self.endpoint is None:
            return self
        try:
            self.all_headers()
            # Imported only if used: it is an extra.
            from exporter.otlp.sender import require_sdk  # noqa: PLC0415  see above

            require_sdk()
        except AckscopeError as error:
            raise ValueError(str(error)) from None
        if self.ca_file is not None and not self.ca_file.is_file():
            raise ValueError(f"ca_file: {self.ca_file} is not a file of PEM certificates")
        return self

    def all_headers(self) -> dict[str, str]:
        """The headers with the token.

        Raises:
            ConfigError: its file cannot be read.
        """
        found = {name: value.get_secret_value() for name, value in self.headers.items()}
        token = secret(None, self.token_file, "token_file")
        return found if token is None else {**found, "Authorization": f"Bearer {token}"}
