"""The benchmarks can be started, and leave nothing out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SERVERS = {"latency_server"}


@pytest.mark.parametrize(("folder", "names"), [("workloads", "WORKLOADS"), ("parts", "PARTS")])
def test_each_file_is_a_benchmark(folder: str, names: str) -> None:
    code = f"import json, benchmarks.__main__ as main; print(json.dumps(main.{names}))"
    listed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = {path.stem for path in (ROOT / "benchmarks" / folder).glob("[a-z]*.py")} - SERVERS
    assert set(json.loads(listed)) == files


def test_a_workload_is_measured_beside_a_loop(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "--only", "elements", "--rounds", "1"]
    command += ["--peers", "aiodata,plain generators", "--json", str(tmp_path / "figures.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "| **aiodata** |" in done.stdout
    (workload,) = json.loads((tmp_path / "figures.json").read_text())["workloads"]
    assert {peer["name"] for peer in workload["peers"]} >= {"aiodata", "plain generators"}
    assert [len(peer["seconds"]) for peer in workload["peers"]] == [1] * len(workload["peers"])


def test_names_that_are_not_there_are_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--only", "nothing"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "no benchmark 'nothing'" in done.stderr
