"""The example plugins have no suffix, so a type checker passes them over: here it does not."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PYRIGHT = shutil.which("pyright", path=str(ROOT / ".venv" / "bin")) or shutil.which("pyright")


@pytest.mark.skipif(PYRIGHT is None, reason="pyright is not installed: nothing was type-checked")
@pytest.mark.timeout(180)  # its first start may take half a minute
def test_the_example_plugins_are_clean_in_strict_mode(tmp_path: Path) -> None:
    assert PYRIGHT is not None
    for script in sorted((ROOT / "plugins").glob("preflight-plugin-*")):
        shutil.copy(script, tmp_path / f"{script.name.replace('-', '_')}.py")
    config = {
        "include": ["."],
        "extraPaths": [str(ROOT / "plugins")],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    done = subprocess.run(
        [PYRIGHT, "-p", str(tmp_path), "--outputjson"], capture_output=True, check=False
    )
    said = json.loads(done.stdout)
    assert [f"{d['file']}: {d['message']}" for d in said["generalDiagnostics"]] == []
    assert said["summary"]["filesAnalyzed"] >= 3
