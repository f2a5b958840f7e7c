"""`ackscope init`: from the address of a management API to a working configuration and a first diagnosis."""

import argparse
import getpass
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr, ValidationError

from ackscope.address import Address, parse_amqp, parse_management
from ackscope.atomic_file import write_atomically
from ackscope.cli import print_json
from ackscope.errors import DataError, Refused, UsageError
from ackscope.format import plural
from ackscope.settings import load, secret
from exporter.api.documents import cluster_findings
from exporter.broker.client import ManagementClient
from exporter.broker.settings import ManagementSettings
from exporter.broker.visibility import hidden_queues
from exporter.commands.diagnose import look_until_certain, terminal_report
from exporter.commands.observer import observe_by_settings
from exporter.settings import CLUSTER_NAME, ExporterSettings
from exporter.setup.broker_admin import BrokerAdmin
from exporter.setup.config_file import InitLayout, config_text, name_from
from exporter.setup.plan import SetupNames, SetupStep, steps
from exporter.setup.survey import BrokerSurvey, speaks_amqp, survey
from probes.settings import AmqpSettings, full_url, usual_stream_port

_WITHIN = 25.0
"""Time limit of the first diagnosis, in seconds."""

_SYSTEMD_FOLDER, _SYSTEMD_DATA = Path("/etc/ackscope"), Path("/var/lib/ackscope")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--management",
        metavar="URL",
        required=True,
        help="http://user:password@host:15672 of an administrator, who is used once; or of a user with the tag "
        "monitoring, then nothing is changed on the broker",
    )
    parser.add_argument(
        "--password-file",
        metavar="FILE",
        type=Path,
        help="file whose first line is the password of that user; a terminal asks for it if it is missing",
    )
    parser.add_argument(
        "--amqp",
        metavar="URL",
        help="AMQP address of the cluster (default: found through the management API); with user and password, the "
        "probes use these",
    )
    parser.add_argument("--ca-file", metavar="FILE", type=Path, help="CA certificates to trust, for https and amqps")
    parser.add_argument("--name", metavar="NAME", help="name of the cluster in metrics and pages (default: its own)")
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, help="folder to write to (default: this one)")
    parser.add_argument(
        "--data", metavar="DIR", type=Path, help="folder of the history (default: data in the folder of --output)"
    )
    parser.add_argument(
        "--systemd",
        action="store_true",
        help=f"write for the systemd units: {_SYSTEMD_FOLDER}/exporter.yml, data in {_SYSTEMD_DATA}",
    )
    parser.add_argument("--no-probes", action="store_true", help="read the management API only, publish nothing")
    parser.add_argument("--monitor-user", metavar="NAME", default="ackscope-monitor", help="default: %(default)s")
    parser.add_argument("--probe-user", metavar="NAME", default="ackscope-probe", help="default: %(default)s")
    parser.add_argument("--probe-vhost", metavar="NAME", default="ackscope", help="default: %(default)s")
    parser.add_argument("--new-passwords", action="store_true", help="give both users new passwords if they exist")
    parser.add_argument("--yes", action="store_true", help="make the changes without asking")
    parser.add_argument("--dry-run", action="store_true", help="show what would be done, and change nothing")
    parser.add_argument("--force", action="store_true", help="overwrite an existing configuration")
    parser.add_argument("--json", action="store_true", help="print the result as a JSON document")


@dataclass(frozen=True, slots=True)
class _Login:
    """Who the exporter is at one side of the broker, and the file that gets the password."""

    role: str
    user: str
    password: str


def run(args: argparse.Namespace) -> int:
    """Survey, ask, make, write, diagnose. Returns 0 once the configuration is written, whatever is found then.

    Raises:
        UsageError: invalid options, no consent, or files that would be overwritten.
        BrokerError: the broker cannot be read, or refuses a change.
        DataError: a file cannot be written.
    """
    folder = args.output or (_SYSTEMD_FOLDER if args.systemd else Path())
    folder = folder.expanduser().absolute()
    data = args.data or (_SYSTEMD_DATA if args.systemd else folder / "data")
    layout = InitLayout(folder, data.expanduser().absolute(), args.systemd)
    if layout.config.exists() and not args.force and not args.dry_run:
        raise UsageError(f"{layout.config}: already exists; choose another folder with --output, or use --force")
    if args.name is not None and not CLUSTER_NAME.fullmatch(args.name):
        raise UsageError(f"--name: invalid name {args.name!r}; use letters, digits, dot, dash and underscore")
    given = _management_settings(args)
    client = ManagementClient(given)
    try:
        broker = survey(client, lambda scheme, host, port: speaks_amqp(scheme, host, port, args.ca_file))
    finally:
        client.close()
    _show(_survey_lines(broker, client.address, args.amqp), args)
    monitor, probe, planned = _logins(args, broker, client.address, layout)
    _show(_plan_lines(broker, planned, args), args)
    if args.dry_run:
        return _end_dry_run(args, planned, layout)
    if planned and not args.yes:
        _ask()
    # Passwords first: a user whose password is lost would be in the way of the next try.
    _make_folders(layout)
    for login in (monitor, probe):
        if login is not None:
            _write(layout.password_file(login.role), f"{login.password}\n".encode())
    _carry_out(planned, given, {login.user: login.password for login in (monitor, probe) if login is not None})
    name = args.name or name_from(broker.cluster)
    _write_config(args, layout, name, broker, given, monitor, probe)
    _show([f"\nWritten: {layout.config}", "\nFirst diagnosis, about 10 s:", ""], args)
    return _first_diagnosis(args, layout, planned, given, monitor, _amqp_settings(args, broker, probe))


def _management_settings(args: argparse.Namespace) -> ManagementSettings:
    address = parse_management(args.management)
    password = secret(None, args.password_file, "--password-file")
    parts = urlsplit(args.management)
    if password is None and parts.username and parts.password is None:
        if not sys.stdin.isatty():
            raise UsageError(f"--management: no password of {address.username!r}; give --password-file FILE")
        password = getpass.getpass(f"Password of {address.username} at {address.where}: ", stream=sys.stderr)
    try:
        settings = ManagementSettings(
            url=f"{address.scheme}://{address.where}{address.path}",
            username=address.username,
            password=SecretStr(address.password if password is None else password),
            ca_file=args.ca_file,
        )
    except ValidationError as error:
        raise UsageError(f"--management: {error.errors()[0]['msg'].removeprefix('Value error, ')}") from None
    if args.amqp is not None:
        parse_amqp(args.amqp)
        if args.no_probes:
            raise UsageError("--no-probes: remove it, or remove --amqp")
    return settings


def _logins(
    args: argparse.Namespace, broker: BrokerSurvey, address: Address, layout: InitLayout
) -> tuple[_Login, _Login | None, list[SetupStep]]:
    """Who reads, who probes (None: nobody), and what has to be made for that."""
    amqp = None if args.amqp is None else parse_amqp(args.amqp)
    own = amqp is not None and urlsplit(args.amqp).username is not None
    given_probe = _Login("probe", amqp.username, amqp.password) if amqp is not None and own else None
    if not broker.administrator:
        return _Login("monitor", address.username, address.password), given_probe, []
    reachable = amqp is not None or broker.amqp is not None
    makes_probe = given_probe is None and reachable and not args.no_probes
    names = SetupNames(args.monitor_user, args.probe_user if makes_probe else None, args.probe_vhost)
    renew = {name for name in (names.monitor, names.probe) if name is not None and args.new_passwords}
    monitor = _login("monitor", names.monitor, broker, layout, renew)
    probe = given_probe if names.probe is None else _login("probe", names.probe, broker, layout, renew)
    return monitor, probe, steps(broker, names, renew)


def _login(role: str, user: str, broker: BrokerSurvey, layout: InitLayout, renew: set[str]) -> _Login:
    """The user with its password: of an earlier run, or a new one.

    Raises:
        UsageError: the user exists, and its password is unknown.
    """
    file = layout.password_file(role)
    if file.exists() and user not in renew:
        return _Login(role, user, secret(None, file, str(file)) or "")
    if user in broker.users and user not in renew:
        raise UsageError(
            f"--{role}-user: {user!r} exists, and {file} does not; choose another name, or give it a new password with "
            "--new-passwords"
        )
    return _Login(role, user, secrets.token_urlsafe(24))


def _survey_lines(broker: BrokerSurvey, address: Address, amqp: str | None) -> list[str]:
    tags = ", ".join(sorted(broker.tags))
    counts = f"{plural(len(broker.nodes), 'node')}, {plural(len(broker.vhosts), 'virtual host')}"
    lines = [
        f"{address.where}: RabbitMQ {broker.version}, cluster {broker.cluster}, {counts}",
        f"  user {broker.user}: {tags}",
    ]
    for node in broker.nodes:
        state = "not running" if not node.running else node.amqp or "AMQP does not answer from here"
        lines.append(f"  node {node.name}: {state}")
    if broker.amqp is None and amqp is None:
        lines.append("  no AMQP port answers from here, so nothing is probed; give its address with --amqp URL")
    return lines


def _plan_lines(broker: BrokerSurvey, planned: list[SetupStep], args: argparse.Namespace) -> list[str]:
    if planned:
        head = f"\nTo be made, with passwords that are generated and stored ({plural(len(planned), 'change')}):"
        return [head, *(f"  {step.command}" for step in planned)]
    if broker.administrator:
        return ["\nNothing has to be made on the broker."]
    lines = [f"\nNothing is made on the broker: user {broker.user} is not an administrator."]
    if args.amqp is None and not args.no_probes:
        wanted = SetupNames(broker.user, args.probe_user, args.probe_vhost)
        # An administrator sees what exists; without one, only what is missing for sure is left out.
        missing = [step for step in steps(broker, wanted) if step.user != broker.user and broker.user not in step.path]
        lines.append("Nothing is probed. For probes, an administrator runs this; then repeat init with --amqp URL:")
        lines += [f"  {step.command}" for step in missing]
    return lines


def _ask() -> None:
    """Ask for consent.

    Raises:
        UsageError: there is none, and nothing was changed.
    """
    if not sys.stdin.isatty():
        raise UsageError("nothing was changed: there is no terminal to ask; use --yes to agree, or --dry-run")
    print("\nMake these changes on the broker? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise UsageError("nothing was changed")


def _end_dry_run(args: argparse.Namespace, planned: list[SetupStep], layout: InitLayout) -> int:
    _show([f"\nDry run: nothing was changed. It would write {layout.config}."], args)
    if args.json:
        print_json({"config": str(layout.config), "changes": [step.command for step in planned], "dry_run": True})
    return 0


def _make_folders(layout: InitLayout) -> None:
    try:
        layout.password_file("monitor").parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not layout.systemd:
            layout.data.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{error.filename}: cannot be made ({error.strerror}); choose another --output") from None


def _write(path: Path, content: bytes) -> None:
    try:
        write_atomically(path, content)
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror}); choose another --output") from None


def _carry_out(planned: list[SetupStep], given: ManagementSettings, passwords: Mapping[str, str]) -> None:
    admin = BrokerAdmin(given)
    for step in planned:
        password = {} if step.user is None else {"password": passwords[step.user]}
        admin.put(step.path, {**step.document, **password})


def _write_config(
    args: argparse.Namespace,
    layout: InitLayout,
    name: str,
    broker: BrokerSurvey,
    given: ManagementSettings,
    monitor: _Login,
    probe: _Login | None,
) -> None:
    trust = {} if args.ca_file is None else {"ca_file": str(args.ca_file.absolute())}
    management: dict[str, Any] = {"url": given.url, **_access(monitor, layout), **trust}
    amqp: dict[str, Any] | None = None
    if probe is not None:
        settings = _amqp_settings(args, broker, probe)
        assert settings is not None  # noqa: S101  for the type checker: there is a probe
        nodes = {node: url.get_secret_value() for node, url in settings.nodes.items()}
        url = settings.server().address
        shown = f"{url.scheme}://{url.where}/{full_url(url).rpartition('/')[2]}"
        stream = {} if settings.stream_port is None else {"stream_port": settings.stream_port}
        amqp = {"url": shown, **_access(probe, layout), **({"nodes": nodes} if nodes else {}), **stream, **trust}
    _write(layout.config, config_text(name, management, amqp, layout).encode())
    # The service reads it as a user of its own; it has no secrets.
    layout.config.chmod(0o644)
    if not args.systemd:
        load(ExporterSettings, layout.config, {})


def _access(login: _Login, layout: InitLayout) -> dict[str, str]:
    return {"username": login.user, "password_file": str(layout.seen_by_exporter(login.role))}


def _amqp_settings(args: argparse.Namespace, broker: BrokerSurvey, probe: _Login | None) -> AmqpSettings | None:
    """Where the probes connect; node by node too if every node can be reached."""
    if probe is None:
        return None
    if args.amqp is not None:
        base = parse_amqp(args.amqp)
        vhost = base.vhost if urlsplit(args.amqp).path.strip("/") or not broker.administrator else args.probe_vhost
        where = f"{base.scheme}://{base.where}"
    else:
        where, vhost = broker.amqp or "", args.probe_vhost
    nodes = {node.name: SecretStr(node.amqp) for node in broker.nodes if node.amqp is not None}
    every = len(nodes) == len(broker.nodes) > 1
    address = Address(*_split(where), probe.user, probe.password, vhost)
    stream_port = broker.stream_ports.get(address.tls)
    return AmqpSettings(
        url=SecretStr(full_url(address)),
        username=probe.user,
        password=SecretStr(probe.password),
        nodes=nodes if every else {},
        stream_port=None if stream_port == usual_stream_port(tls=address.tls) else stream_port,
        ca_file=args.ca_file,
    )


def _split(where: str) -> tuple[str, str, int]:
    address = parse_amqp(where)
    return address.scheme, address.host, address.port


def _first_diagnosis(
    args: argparse.Namespace,
    layout: InitLayout,
    planned: list[SetupStep],
    given: ManagementSettings,
    monitor: _Login,
    amqp: AmqpSettings | None,
) -> int:
    settings = given.model_copy(update={"username": monitor.user, "password": SecretStr(monitor.password)})
    try:
        with observe_by_settings(settings, amqp) as look:
            seen, verdict = look_until_certain(look, None, _WITHIN)
    except Refused as error:
        raise Refused(f"{error} (the configuration is written, its password is wrong: --new-passwords)") from None
    hidden = hidden_queues(seen.window.latest) if seen.window.latest is not None else None
    if args.json:
        entry = cluster_findings(verdict.cluster, seen.window.latest, verdict, seen.now, look.management)
        changes = [step.command for step in planned]
        print_json({"config": str(layout.config), "changes": changes, "dry_run": False, "findings": entry["findings"]})
        return 0
    sys.stdout.write(terminal_report(seen, verdict, look.management))
    if hidden:
        print(
            f"\n{plural(hidden, 'queue')} not visible to {monitor.user}: it has no permission on their virtual hosts; "
            f"for each one, rabbitmqctl set_permissions -p VHOST {monitor.user} '' '' ''"
        )
    print("\n".join(_next_lines(layout)))
    return 0


def _next_lines(layout: InitLayout) -> list[str]:
    if layout.systemd:
        return [
            "\nNext:",
            "  ackscope files systemd -o units && cp units/*.service units/*.timer /etc/systemd/system/",
            "  systemctl daemon-reload && systemctl enable --now ackscope-exporter",
        ]
    rollups, landing = layout.data / "rollups", layout.data / "landing"
    return [
        "\nNext:",
        f"  ackscope exporter --config.file {layout.config}",
        f"  ackscope pipeline stream --landing {landing} --rollups {rollups}",
        f"  ackscope dashboard --exporter http://127.0.0.1:9419 --rollups {rollups}",
    ]


def _show(lines: list[str], args: argparse.Namespace) -> None:
    """Print for people; with --json the document alone is on stdout."""
    stream = sys.stderr if args.json else sys.stdout
    print("\n".join(lines), file=stream, flush=True)
