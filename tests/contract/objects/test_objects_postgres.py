"""A store in PostgreSQL: how it is opened, who may do what, and what is said when it cannot be used."""

from __future__ import annotations

import datetime
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.support.postgres import (
    PASSWORD,
    Postgres,
    count_up,
    hand_over,
    new_folder,
    new_schema,
    postgres,
    start_postgres,
    use_password,
    wait_until,
)
from tests.support.postgres_proxy import run_tls_proxy

from stackyard.base.errors import StackyardError, UsageError
from stackyard.clients.objects import (
    ABSENT,
    StoreBusyError,
    StoreDamagedError,
    StoreDeniedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    open_objects,
)
from stackyard.clients.objects.postgres import PostgresAddress, PostgresObjects, statements
from stackyard.clients.objects.sealed import KeyRing, MasterKey

__all__ = ["postgres"]

Open = Callable[..., PostgresObjects]


@pytest.fixture
def connect() -> Iterator[Open]:
    """Give what opens a store and closes it at the end."""
    opened: list[PostgresObjects] = []

    def connect(address: str, **options: Any) -> PostgresObjects:
        opened.append(PostgresObjects(PostgresAddress.parse(address), **options))
        return opened[-1]

    yield connect
    for objects in opened:
        objects.close()


def schemas(postgres: Postgres) -> set[str]:
    return {name for (name,) in postgres.run("SELECT nspname::text FROM pg_namespace")}


# --- Opening


def test_a_store_that_is_only_read_is_never_made(postgres: Postgres, connect: Open) -> None:
    schema = new_schema()
    with pytest.raises(StoreError, match=f"no store in the schema {schema}"):
        connect(postgres.address(schema), create=False)
    assert schema not in schemas(postgres)
    connect(postgres.address(schema)).put("x", b"1", expect=ABSENT)
    reader = connect(postgres.address(schema), create=False)
    found = reader.get("x")
    assert found is not None
    reader.put("x", b"2", expect=found.tag)


def test_clients_that_make_a_store_at_the_same_time_all_succeed(postgres: Postgres, connect: Open) -> None:
    address, opened = postgres.address(new_schema()), list[PostgresObjects]()
    threads = [threading.Thread(target=lambda: opened.append(connect(address))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    opened[0].put("x", b"1", expect=ABSENT)
    assert all(objects.get("x") is not None for objects in opened)
    assert len(opened) == 8


def test_a_newer_format_and_tables_of_others_are_refused(postgres: Postgres, connect: Open) -> None:
    newer, foreign = new_schema(), new_schema()
    connect(postgres.address(newer))
    postgres.run(f"UPDATE {newer}.store_format SET version = 2")
    postgres.run(f"CREATE SCHEMA {foreign}")
    postgres.run(f"CREATE TABLE {foreign}.objects (key text)")
    for create in (True, False):
        with pytest.raises(StoreDamagedError, match="newer stackyard"):
            connect(postgres.address(newer), create=create)
        with pytest.raises(StoreDamagedError, match="another program"):
            connect(postgres.address(foreign), create=create)


def test_a_schema_that_is_dropped_is_an_error_and_not_an_empty_store(
    postgres: Postgres, connect: Open
) -> None:
    schema = new_schema()
    objects = connect(postgres.address(schema))
    objects.put("x", b"1", expect=ABSENT)
    postgres.run(f"DROP SCHEMA {schema} CASCADE")
    for action in (lambda: objects.get("x"), lambda: objects.list(""), lambda: objects.delete("x")):
        with pytest.raises(StoreError):
            action()


def test_objects_are_sorted_by_bytes_in_a_database_of_any_encoding(postgres: Postgres, connect: Open) -> None:
    keys = ["B", "_", "a", "a!b", "a-b", "a.b", "a/b", "aB", "ab", "~"]
    name = new_schema()
    postgres.run(f"CREATE DATABASE {name} ENCODING SQL_ASCII TEMPLATE template0")
    objects = connect(postgres.address(name).replace("/postgres?", f"/{name}?"))
    for key in reversed(keys):
        objects.put(key, b"1", expect=ABSENT)
    assert [entry.key for entry in objects.list("")] == sorted(keys)
    assert objects.list("ä") == ()
    with postgres.connect(dbname=name, client_encoding="UTF8") as connection:
        collation = "SELECT collation_name FROM information_schema.columns WHERE column_name = 'key'"
        assert ("C",) in connection.execute(collation).fetchall()


def test_a_sealed_store_keeps_nothing_readable(postgres: Postgres) -> None:
    schema = new_schema()
    objects = open_objects(postgres.address(schema), ring=KeyRing((MasterKey(b"k" * 32),)))
    objects.put("x", b"plain words", expect=ABSENT, before={"y": b"plain words"})
    found = objects.get("x")
    objects.close()
    assert found is not None
    assert found.data == b"plain words"
    rows = postgres.run(f"SELECT data FROM {schema}.objects")
    assert len(rows) == 2
    assert not any(b"plain" in data for (data,) in rows)


def test_a_commit_waits_for_the_disk_whatever_the_server_is_set_to(postgres: Postgres, connect: Open) -> None:
    role = new_schema()
    postgres.run(f"CREATE ROLE {role} LOGIN SUPERUSER PASSWORD '{PASSWORD}'")
    for setting, expected in (("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")):
        postgres.run(f"ALTER ROLE {role} SET synchronous_commit = {setting}")
        objects = connect(postgres.address(role).replace("owner@", f"{role}@"))
        with objects._pool.connection() as connection:
            assert connection.execute("SHOW synchronous_commit").fetchone() == (expected,)


def test_no_update_is_lost_at_any_isolation_level(postgres: Postgres, connect: Open) -> None:
    role = new_schema()
    postgres.run(f"CREATE ROLE {role} LOGIN SUPERUSER PASSWORD '{PASSWORD}'")
    postgres.run(f"ALTER ROLE {role} SET default_transaction_isolation = serializable")
    objects = connect(postgres.address(role).replace("owner@", f"{role}@"))
    threads = [
        threading.Thread(target=lambda: [count_up(objects, "count") for _ in range(10)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = objects.get("count")
    assert found is not None
    assert found.data == b"40"


def test_records_of_writes_are_removed_after_an_hour(postgres: Postgres, connect: Open) -> None:
    schema = new_schema()
    objects = connect(postgres.address(schema))
    for number in range(6):
        objects.put(f"{number}", b"1", expect=ABSENT)
    postgres.run(f"UPDATE {schema}.writes SET written_at = written_at - interval '2 hours'")
    for number in range(6, 12):
        objects.put(f"{number}", b"1", expect=ABSENT)
    assert postgres.run(f"SELECT count(*) FROM {schema}.writes") == [(6,)]
    assert len(objects.list("")) == 12


@pytest.mark.parametrize("put", [statements.PUT_TAG, statements.PUT_ABSENT, statements.PUT_ANYTHING])
def test_a_write_does_not_read_all_records_of_writes(postgres: Postgres, connect: Open, put: str) -> None:
    schema = new_schema()
    connect(postgres.address(schema))
    postgres.run(
        f"INSERT INTO {schema}.writes SELECT md5(n::text), now() FROM generate_series(1, 20000) AS row (n)"
    )
    values = {
        "key": "x",
        "tag": "new",
        "data": b"1",
        "expect": "old",
        "channel": "c",
        "keys": [],
        "bodies": [],
    }
    with postgres.connect() as connection:
        plan = connection.execute(b"EXPLAIN " + statements.fill_in(put, schema), values).fetchall()
    lines = [line.strip() for (line,) in plan]
    assert [line for line in lines if line.startswith("Index Cond: (written_at <")]
    assert not [line for line in lines if "Seq Scan on writes" in line]


# --- Rights


def make_role(postgres: Postgres, schema: str, *grants: str) -> str:
    """Make a user with rights; return the address of the store for it."""
    role = f"{schema}_user"
    postgres.run(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
    for grant in grants:
        postgres.run(f"GRANT {grant} TO {role}")
    return postgres.address(schema).replace("owner@", f"{role}@")


def test_a_user_who_may_only_read_reads(postgres: Postgres, connect: Open) -> None:
    schema = new_schema()
    connect(postgres.address(schema)).put("x", b"1", expect=ABSENT)
    rights = (f"USAGE ON SCHEMA {schema}", f"SELECT ON ALL TABLES IN SCHEMA {schema}")
    address = make_role(postgres, schema, *rights)
    reader = connect(address, create=False)
    assert reader.get("x") is not None
    assert len(reader.list("")) == 1
    for action in (lambda: reader.put("y", b"1", expect=ABSENT), lambda: reader.delete("x")):
        with pytest.raises(StoreReadOnlyError):
            action()
    with pytest.raises(StoreReadOnlyError):
        connect(address)


def test_the_rights_that_the_reference_lists_are_enough(postgres: Postgres, connect: Open) -> None:
    schema = new_schema()
    connect(postgres.address(schema))
    rights = (
        f"USAGE ON SCHEMA {schema}",
        f"SELECT, INSERT, UPDATE, DELETE ON {schema}.objects, {schema}.writes",
        f"SELECT ON {schema}.store_format",
    )
    objects = connect(make_role(postgres, schema, *rights))
    tag = objects.put("x", b"1", expect=ABSENT, before={"y": b"1"})
    objects.put("x", b"2", expect=tag)
    objects.delete("x")
    with objects.watch("") as watching:
        objects.delete("y")
        assert watching.wait(100.0)


def test_a_user_without_rights_is_refused(postgres: Postgres, connect: Open) -> None:
    schema = new_schema()
    connect(postgres.address(schema))
    address = make_role(postgres, schema)
    with pytest.raises(StoreDeniedError):
        connect(address, create=False)
    with pytest.raises(StoreReadOnlyError):
        connect(address.replace(f"schema={schema}", f"schema={new_schema()}"))


# --- Refusals


def refusal(action: Callable[[], object]) -> str:
    with pytest.raises((StoreError, StoreBusyError)) as caught:
        action()
    return caught.value.detail


@pytest.mark.parametrize("password", ["wrong", None])
def test_a_wrong_password_is_refused_at_once_and_never_printed(
    postgres: Postgres, connect: Open, monkeypatch: pytest.MonkeyPatch, password: str | None
) -> None:
    if password is None:
        monkeypatch.delenv("PGPASSWORD")
    else:
        monkeypatch.setenv("PGPASSWORD", password)
    with pytest.raises(StoreDeniedError) as caught:
        connect(postgres.address(new_schema()))
    assert "PGPASSWORD" in caught.value.remedy
    assert "wrong" not in str(caught.value)


def test_a_password_file_and_a_service_file_are_used(
    postgres: Postgres, connect: Open, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.delenv("PGPASSWORD")
    (home / ".pgpass").write_text(f"127.0.0.1:{postgres.port}:postgres:owner:{PASSWORD}\n")
    (home / ".pgpass").chmod(0o600)
    # libpq asks the system for the home folder before it looks at HOME.
    monkeypatch.setenv("PGPASSFILE", str(home / ".pgpass"))
    connect(postgres.address(new_schema()))
    (home / "services").write_text(
        f"[yard]\nhost=127.0.0.1\nport={postgres.port}\nuser=owner\ndbname=postgres\npassword={PASSWORD}\n"
    )
    monkeypatch.setenv("PGPASSFILE", "/dev/null")
    monkeypatch.setenv("PGSERVICEFILE", str(home / "services"))
    connect(f"postgresql:///?service=yard&sslmode=prefer&schema={new_schema()}")


def test_a_missing_database_and_an_unreachable_server_are_named(postgres: Postgres, connect: Open) -> None:
    address = postgres.address(new_schema())
    with pytest.raises(StoreError, match='database "nowhere" does not exist') as caught:
        connect(address.replace("/postgres?", "/nowhere?"))
    assert "Create the database" in caught.value.remedy
    with pytest.raises(
        StoreError, match=r"^Database postgres at 127\.0\.0\.1:1 cannot be reached: Connection refused\.$"
    ):
        connect(address.replace(f":{postgres.port}/", ":1/"))


def test_a_server_that_shuts_down_or_has_no_connection_left_is_named(
    connect: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_password(monkeypatch)
    with start_postgres({"max_connections": "4", "superuser_reserved_connections": "0"}) as server:
        others: list[Any] = []

        def takes_another() -> bool:
            # The connection by which its start was seen may not have ended yet.
            try:
                others.append(server.connect())
            except psycopg.OperationalError:
                return False
            return True

        for _ in range(4):
            wait_until(takes_another)
        with pytest.raises(StoreBusyError, match="too many clients"):
            connect(server.address(), patience_s=0.2)
        assert server.process is not None
        # It waits for those who are connected, and takes no others.
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "shutting down" in refusal(lambda: connect(server.address(), patience_s=0.2)))
        for other in others:
            other.close()


@pytest.mark.skipif(os.getuid() != 0, reason="a small disk takes root")
def test_a_full_disk_is_reported_and_what_was_stored_stays(postgres: Postgres, connect: Open) -> None:
    disk, schema = new_folder(), new_schema()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], check=False)
    if mounted.returncode:
        disk.rmdir()
        pytest.skip("a disk cannot be mounted here")
    try:
        hand_over(disk)
        objects = connect(postgres.address(schema))
        objects.put("x", b"1", expect=ABSENT)
        postgres.run(f"CREATE TABLESPACE {schema} LOCATION '{disk}'")
        postgres.run(f"ALTER TABLE {schema}.objects SET TABLESPACE {schema}")
        with pytest.raises(StoreFullError):
            objects.put("y", os.urandom(4_000_000), expect=ABSENT)
        assert objects.get("y") is None
        assert objects.get("x") is not None
        postgres.run(f"DROP SCHEMA {schema} CASCADE")
        postgres.run(f"DROP TABLESPACE {schema}")
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
        disk.rmdir()


# --- TLS


def write_certificates(folder: Path, name: str) -> None:
    """Write an authority, and a certificate and key for a server of this name."""
    now, key = datetime.datetime.now(datetime.UTC), ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "server.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
    (folder / "server.key").chmod(0o600)
    (folder / "server.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))


def test_a_server_elsewhere_must_prove_its_name(postgres: Postgres, connect: Open, tmp_path: Path) -> None:
    write_certificates(tmp_path, "db.example")
    certificate, key = str(tmp_path / "server.crt"), str(tmp_path / "server.key")
    with run_tls_proxy(postgres.port, certificate, key) as port:
        address = f"postgresql://owner@db.example:{port}/postgres?hostaddr=127.0.0.1&schema={new_schema()}"
        trusted = connect(f"{address}&sslrootcert={certificate}")
        with trusted._pool.connection() as connection:
            assert connection.pgconn.ssl_in_use
        for wrong in (
            f"{address.replace('db.example', 'other.example')}&sslrootcert={certificate}",
            f"{address}&sslrootcert={tmp_path / 'missing.crt'}",
            # A server without TLS.
            f"{address.replace(str(port), str(postgres.port))}&sslrootcert={certificate}",
        ):
            with pytest.raises(StoreError) as caught:
                connect(wrong)
            assert "sslrootcert" in caught.value.remedy
        # The address may say that nothing is checked.
        connect(f"{address}&sslmode=require")
        trusted.close()


# --- Addresses


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://user:pw@host/database",
        "postgresql://user:p/pw@host/database",
        "postgresql://user:p%2Fpw@host/database",
        "postgresql://:pw@host/database",
        "postgresql://host/database?password=pw",
        "postgresql://host/database?PASSWORD=pw",
        "postgresql://host/database?sslpassword=pw",
        "postgresql://host/database?options=-cpw",
        "postgresql://host/database?unknown=pw",
        "postgresql://user@host/database?schema=pw-",
        "postgresql://user@host/database?schema=pw&schema=pw2",
        "postgresql://user@host/database?schema=",
        "postgresql://user@host:port-pw/database?schema=PW",
        "postgresql://user@[pw/database",
        "postgresql://user@host",
        "postgresql://",
    ],
)
def test_an_address_that_makes_no_sense_is_refused_and_not_quoted(address: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_objects(address)
    assert "pw" not in (caught.value.detail + caught.value.remedy).lower()


def test_a_host_elsewhere_is_verified_unless_the_address_says_otherwise() -> None:
    def mode(address: str) -> str | None:
        return PostgresAddress.parse(f"postgresql://{address}").parameters.get("sslmode")

    for local in ("localhost/x", "127.0.0.2/x", "[::1]:5433/x", "/x?host=/run/postgresql", "%2Frun/x"):
        assert mode(local) is None
    for remote in ("db.example/x", "10.0.0.1/x", "localhost,db.example/x", "/x", "/?service=states"):
        assert mode(remote) == "verify-full"
    assert mode("db.example/x?sslmode=require") == "require"


def test_several_hosts_mean_the_primary_of_them() -> None:
    parse = PostgresAddress.parse
    address = parse("postgresql://me@one:1,two:2/x?schema=yard&sslrootcert=/ca.crt")
    assert address.schema == "yard"
    wanted = {"host": "one,two", "port": "1,2", "user": "me", "dbname": "x", "sslrootcert": "/ca.crt"}
    assert wanted.items() <= address.parameters.items()
    assert address.parameters["target_session_attrs"] == "primary"
    assert address.label == "database x at one:1, two:2"
    assert parse("postgresql://one/x").label == "database x at one"
    assert parse("postgresql:///x").label == "database x"
    assert parse("postgresql:///?service=yard").label == "the database of service yard"
    assert "target_session_attrs" not in parse("postgresql://one/x").parameters


def test_no_error_of_psycopg_leaves_the_store(postgres: Postgres, connect: Open) -> None:
    objects = connect(postgres.address(new_schema()))
    with pytest.raises(StackyardError):
        objects.list("\x00")
    with pytest.raises(StackyardError):
        objects.list("", limit=-1)
