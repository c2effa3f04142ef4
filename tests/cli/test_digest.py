"""onrecord digest."""

from __future__ import annotations

import json
import subprocess

import pytest

from support.runtime import child_environment, onrecord


def run(*args: str, stdin: bytes | None = None):
    done = subprocess.run(
        onrecord("digest", *args), input=stdin, capture_output=True, env=child_environment()
    )
    return done.returncode, done.stdout, done.stderr


class TestDigest:
    @pytest.mark.req("CP-022")
    def test_example(self):
        """The draft's example gives its digest, as text and as JSON."""
        code, out, _ = run("--name", "read_file", "--arguments", '{"path":"repo/src/main.ts"}')
        assert (code, out.strip()) == (0, b"S-sEkYFCUR01UPHSGshDxsqQ3cBhLpO12jehKE-IEUs")
        code, out, err = run("--name", "read_file", "--json")
        assert (code, err) == (0, b"")
        assert json.loads(out) == {"digest": "w5s6xGNCZZG9RwUm2RwnbKFaVODAR9Bt5Rgr6wUejDo"}

    def test_raw_bytes_from_file(self, tmp_path):
        """@FILE is read as bytes: bad UTF-8 is refused as what it is."""
        file = tmp_path / "arguments"
        file.write_bytes(b'{"path":"\xff"}')
        code, out, _ = run("--name", "t", "--arguments", f"@{file}", "--json")
        assert code == 2
        assert json.loads(out)["error"]["reason"] == "not_utf8"

    @pytest.mark.parametrize(
        ("arguments", "reason"),
        [
            ('{"a":1,"a":2}', "duplicate"),
            ("[]", "not_object"),
            ("null", "not_object"),
            ('{"a":9007199254740993}', "unsafe_integer"),
            ('{"a":1e400}', "nonfinite"),
            ('{"a":"\\ud800"}', "surrogate"),
            ('{"a":01}', "syntax"),
            ("\ufeff{}", "bom"),
            ('{"a":' * 65 + "1" + "}" * 65, "depth"),
        ],
    )
    def test_refusals(self, arguments, reason):
        """Each class is refused with exit 2, the code `refused` and its reason."""
        code, out, _ = run("--name", "t", "--arguments", arguments, "--json")
        error = json.loads(out)["error"]
        assert (code, error["code"], error["reason"]) == (2, "refused", reason)

    def test_size(self, tmp_path):
        """1 MiB of arguments passes, one byte more is too_large."""
        file = tmp_path / "arguments"
        text = b'{"a":"' + b"x" * (1_048_576 - 8) + b'"}'
        file.write_bytes(text)
        assert run("--name", "t", "--arguments", f"@{file}")[0] == 0
        file.write_bytes(text + b" ")
        code, out, _ = run("--name", "t", "--arguments", f"@{file}", "--json")
        assert (code, json.loads(out)["error"]["reason"]) == (2, "too_large")

    def test_missing_file(self):
        """A file that is not there is an input error that names it."""
        code, out, _ = run("--name", "t", "--arguments", "@/nowhere/x", "--json")
        error = json.loads(out)["error"]
        assert (code, error["code"], error["where"]["file"]) == (2, "input-unreadable", "/nowhere/x")
