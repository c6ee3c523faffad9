"""Where the book lives: its repository and its address, and what depends on them.

Both are settings of _config.yml; a workflow may give them as DAPO_REPOSITORY and
DAPO_SITE. Where they are unset there are no Colab and Binder links, no installing cell,
no sitemap: a dead link is worse than none. Left out: any other host than GitHub, which
is what Colab and Binder read from.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from dapo_lib.errors import BadInput
from dapo_lib.publish import configs
from dapo_lib.publish.layout import LANGS, Layout

BRANCH = "notebooks"  # one-language copies, written by the workflow
CHINESE_FONT = "fonts-wqy-microhei"  # a package of Debian and of Colab
_REPOSITORY = re.compile(r"https://github\.com/([\w.-]+)/([\w.-]+?)(?:\.git)?/?")
_SITE = re.compile(r"https://[\w.-]+(?::\d+)?(/[\w./~-]*)?")


@dataclass(frozen=True)
class Home:
    """`owner`/`name` on GitHub and the site's address with a slash; empty if unset."""

    owner: str = ""
    name: str = ""
    site: str = ""

    @property
    def repository(self) -> str:
        """The repository's address, or nothing."""
        return f"https://github.com/{self.owner}/{self.name}" if self.owner else ""

    def buttons(self, notebook: str, lang: str) -> dict[str, str]:
        """Name -> address of the places that run a chapter in the reader's language.

        >>> Home().buttons("03_clip_higher", "zh")
        {}
        >>> Home("me", "book").buttons("03_clip_higher", "zh")["Colab"]
        'https://colab.research.google.com/github/me/book/blob/notebooks/zh/03_clip_higher.ipynb'
        """
        if not self.owner:
            return {}
        path, place = f"{lang}/{notebook}.ipynb", f"{self.owner}/{self.name}"
        colab = "https://colab.research.google.com/github"
        binder = "https://mybinder.org/v2/gh"
        return {
            "Colab": f"{colab}/{place}/blob/{BRANCH}/{path}",
            "Binder": f"{binder}/{place}/{BRANCH}?urlpath=lab/tree/{quote(path)}",
        }


def home(layout: Layout) -> Home:
    """The settings of this checkout. Raises ``BadInput`` on an address of another form.

    The site of a GitHub project is derived from its name where it is not given.
    """
    settings = _settings(layout)
    repository = _given(settings, "repository", "DAPO_REPOSITORY")
    site = _given(settings, "site", "DAPO_SITE")
    owner = name = ""
    if repository:
        match = _REPOSITORY.fullmatch(repository)
        if match is None:
            wanted = "https://github.com/OWNER/NAME, or nothing"
            raise BadInput(f"dapo_repository: got {repository!r}, expected {wanted}")
        owner, name = match.groups()
        site = site or f"https://{owner.lower()}.github.io/{name}/"
    if site and not _SITE.fullmatch(site):
        raise BadInput(f"dapo_site: got {site!r}, expected https://..., or nothing")
    return Home(owner, name, site.rstrip("/") + "/" if site else "")


def install_cell(place: Home, lang: str) -> str:
    """Code that installs `dapo_lib` where it is missing, and a font for Chinese.

    >>> "dapo_lib" in install_cell(Home("me", "book"), "en")
    True
    """
    lines = [
        "# Colab and Binder: install dapo_lib only where it is missing",
        "import subprocess",
        "import sys",
        "from importlib.util import find_spec",
        "",
        'if find_spec("dapo_lib") is None:',
        f'    source = "git+{place.repository}"',
        '    pip = [sys.executable, "-m", "pip", "install", "-q", source]',
        "    subprocess.run(pip, check=True)",
    ]
    if lang == "zh":
        lines += [
            "    # Chinese in the figures needs a font",
            f'    font = ["apt-get", "install", "-y", "-q", "{CHINESE_FONT}"]',
            "    subprocess.run(font, check=False)",
        ]
    return "\n".join(lines)


def sitemap(place: Home, pages: list[str]) -> str:
    """All pages, each with its twin in the other language (`en/...`, `zh/...`)."""
    from dapo_lib.publish.languages import twin
    from dapo_lib.publish.layout import LANGUAGE_TAGS

    entries = []
    for page in sorted(pages):
        lang, _, inner = page.partition("/")
        links = "".join(
            f'<xhtml:link rel="alternate" hreflang="{LANGUAGE_TAGS[other]}" '
            f'href="{place.site}{other}/{twin(inner, lang, other)}"/>'
            for other in LANGS
        )
        entries.append(f"<url><loc>{place.site}{page}</loc>{links}</url>")
    spaces = (
        'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" '
        'xmlns:xhtml="http://www.w3.org/1999/xhtml"'
    )
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return f"{head}<urlset {spaces}>\n" + "\n".join(entries) + "\n</urlset>\n"


def branch_files(place: Home) -> dict[str, str]:
    """What stands beside the notebooks of the branch that Binder builds from."""
    return {
        "requirements.txt": f"dapo-book @ git+{place.repository}\njupyterlab\n",
        "apt.txt": f"{CHINESE_FONT}\n",
    }


def _settings(layout: Layout) -> dict[str, Any]:
    loaded = configs.read(layout.root / "_config.yml") or {}
    return loaded.get("sphinx", {}).get("config", {})


def _given(settings: dict[str, Any], name: str, variable: str) -> str:
    """The environment's value, else the setting; a placeholder counts as nothing."""
    value = os.environ.get(variable) or str(settings.get(f"dapo_{name}") or "")
    return "" if "OWNER" in value else value.strip()
