"""Clients that generators make of the three OpenAPI documents: they compile, and those in Python do their work.

Never looks at how a client is written. Invariants: the documents are those of a running service; no generator passes
over a path, but for bodies of types that it does not know.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import openapi_generator_cli
import pytest

from tests.acceptance.service import running
from tests.house.tree import ROOT

WITHIN_S = 120
DOCUMENTS = ("scheduler", "attribution", "collector")
GENERATORS: dict[str, dict[str, Any]] = {"python": {}, "typescript-fetch": {}, "java": {}}
UNKNOWN_TYPES = ("text/plain", "application/x-ndjson")
BRIEFLY = "-XX:TieredStopAtLevel=1"


@dataclass(frozen=True)
class Clients:
    """Where a service is, its documents, and the clients made of them."""

    url: str
    click_url: str
    data_dir: Path
    folder: Path

    def document(self, name: str) -> Any:
        """One of `DOCUMENTS`, as the service gives it."""
        return json.loads((self.folder / f"{name}.json").read_bytes())


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    """A running service, and the clients of `openapi-generator`: nine of them, in one go."""
    data_dir, folder = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("clients")
    taking = ("--clicks", "--click-port", "0", "--click-profile", "open")
    with contextlib.ExitStack() as stack:
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("CLICKCLOCK_SEGMENT_AGE_S", "0.5")
        service = stack.enter_context(running(data_dir, *taking))
        places = (f"{service.url}/openapi.json", f"{service.url}/attribution/openapi.json")
        for name, url in zip(DOCUMENTS, (*places, f"{service.click_url}/openapi.json"), strict=True):
            (folder / f"{name}.json").write_bytes(httpx.get(url).raise_for_status().content)
        for generator in GENERATORS:
            for name in DOCUMENTS:
                wanted = {
                    "generatorName": generator,
                    "inputSpec": str(folder / f"{name}.json"),
                    "outputDir": str(folder / generator / name),
                    "packageName": f"{name}_client",
                }
                (folder / f"batch-{generator}-{name}.json").write_text(json.dumps(wanted), encoding="utf-8")
        jar = Path(openapi_generator_cli.__file__).with_name("openapi-generator.jar")
        batch = map(str, sorted(folder.glob("batch-*.json")))
        _run("java", BRIEFLY, "-jar", str(jar), "batch", "--fail-fast", *batch)
        yield Clients(service.url, service.click_url, data_dir, folder)


def _run(*command: str, cwd: Path | None = None, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


@pytest.mark.needs("javac")
def test_the_python_client_of_openapi_generator_walks_the_main_roads(clients: Clients) -> None:
    path = os.pathsep.join(str(clients.folder / "python" / name) for name in DOCUMENTS)
    road = (ROOT / "tests/acceptance/generated_road.py").as_posix()
    _run(sys.executable, road, clients.url, clients.click_url, str(clients.data_dir), PYTHONPATH=path)


@pytest.mark.needs("javac")
def test_the_client_of_openapi_python_client_walks_the_same_roads(clients: Clients) -> None:
    (clients.folder / "attrs.yaml").write_text("post_hooks: []\n", encoding="utf-8")  # they would format it
    for name in DOCUMENTS:
        output = clients.folder / "attrs" / f"{name}_client"
        said = _run(
            *(sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"),
            *("--config", str(clients.folder / "attrs.yaml")),
            *("--path", str(clients.folder / f"{name}.json"), "--output-path", str(output)),
        )
        passed_over = [line for line in said.splitlines() if line.startswith(("Unsupported", "Cannot", "Unable"))]
        assert [line for line in passed_over if not line.endswith(UNKNOWN_TYPES)] == [], said
    road = (ROOT / "tests/acceptance/generated_attrs_road.py").as_posix()
    _run(sys.executable, road, clients.url, PYTHONPATH=str(clients.folder / "attrs"))


@pytest.mark.needs("javac", "npm")
def test_the_clients_in_typescript_compile(clients: Clients) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(ROOT / "tests/data/typescript" / name, clients.folder)
    _run("npm", "ci", "--silent", "--no-audit", "--no-fund", "--prefer-offline", cwd=clients.folder)
    tools = clients.folder / "node_modules/.bin"
    sources = [source for name in DOCUMENTS for source in (f"{name}.ts", f"typescript-fetch/{name}/index.ts")]
    for name in DOCUMENTS:
        _run(str(tools / "openapi-typescript"), f"{name}.json", "-o", f"{name}.ts", cwd=clients.folder)
    strict = ("--noEmit", "--strict", "--target", "es2022", "--module", "es2022", "--moduleResolution", "bundler")
    _run(str(tools / "tsc"), *strict, "--lib", "es2022,dom", *sources, cwd=clients.folder)


@pytest.mark.needs("javac")
def test_the_clients_in_java_are_java(clients: Clients) -> None:
    """What they import comes from Maven, which this suite does without: so they are read, and not compiled."""
    files = [str(path) for path in (clients.folder / "java").rglob("src/main/**/*.java")]
    assert len(files) > 100
    _run("javac", f"-J{BRIEFLY}", "-proc:none", "-XDshould-stop.ifNoError=PARSE", "-d", str(clients.folder), *files)


def test_every_example_in_the_documents_is_of_its_schema(clients: Clients) -> None:
    for name in DOCUMENTS:
        document = clients.document(name)
        faults = [
            f"{path} {method} {status} {error.json_path}: {error.message[:120]}"
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
            for status, answer in operation["responses"].items()
            for content in answer.get("content", {}).values()
            for example in [
                *([content["example"]] if "example" in content else []),
                *(each["value"] for each in content.get("examples", {}).values()),
            ]
            for error in _validator(document, content["schema"]).iter_errors(example)
        ]
        assert faults == [], name


def _validator(document: Any, schema: Any) -> Any:
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # noqa: PLC0415 - slow to import

    return Draft202012Validator({**schema, "components": document["components"]})
