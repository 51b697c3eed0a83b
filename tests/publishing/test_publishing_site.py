"""The catalogue: every text is escaped, every link leads somewhere, and it looks right."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import zlib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from publishing_support import ALICE, card, upload

from prime_core.publishing.index import Index

NASTY = "<script>alert(\"x\")</script> & 'quotes'"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the PATH")


class Links(HTMLParser):
    """Where a page leads, what it loads, and which tags it holds."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.targets += [value for name, value in attrs if name in ("href", "src") and value]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    index = Index(str(folder))
    shown = card("sums")
    shown["environments"][0]["samples"][0]["prompt"] = [["user", NASTY]]
    shown["environments"].append({"name": "absent", "unavailable": NASTY})
    index.add(upload("prime-env-sums", "0.9", level="silver"), ALICE)
    index.add(
        upload("prime-env-sums", "1.0", level="silver", shown=shown, change={"summary": NASTY}),
        ALICE,
    )
    index.add(upload("prime-reward-brevity", kind="reward", level="none"), ALICE)
    index.add(
        upload("prime-env-a-rather-long-name-that-has-to-wrap-on-phones", level="gold"), ALICE
    )
    index.yank("prime-env-sums", "0.9", NASTY, ALICE)
    assert index.build() == []
    return folder


def pages(site: Path) -> list[Path]:
    return [site / "index.html", *(site / "projects").glob("*/index.html")]


def test_every_text_is_escaped(site):
    for page in [*pages(site), *site.glob("simple/**/*.html")]:
        text = page.read_text()
        links = Links()
        links.feed(text)
        assert "alert" not in re.sub(r"&lt;script&gt;alert|&quot;x&quot;|onerror=alert", "", text)
        assert "img" not in links.tags
        assert links.tags.count("script") <= 1


def test_every_link_leads_to_a_file_of_the_index(site):
    for page in [*pages(site), *site.glob("simple/**/*.html")]:
        links = Links()
        links.feed(page.read_text())
        assert links.targets
        for target in links.targets:
            parts = urlsplit(target)
            if parts.scheme == "data":
                continue
            assert (parts.scheme, parts.netloc) == ("", ""), f"{page} asks {target}"
            found = page.parent / unquote(parts.path)
            assert (found / "index.html" if found.is_dir() else found).is_file(), target


def test_a_page_shows_what_one_wants_to_know(site):
    text = (site / "projects/prime-env-sums/index.html").read_text()
    for wanted in (
        "prime-core install prime-env-sums==1.0",
        "[[environments]]",
        f"publishers = [&quot;{ALICE.address}&quot;]",
        "min_level = &quot;silver&quot;",
        "Score distributions",
        "Difficulty of sums",
        "Exploits",
        "a shotgun of all answers gets 0.5",
        "yanked",
        "0.083",
        ALICE.address,
    ):
        assert wanted in text, wanted
    unchecked = (site / "projects/prime-reward-brevity/index.html").read_text()
    assert "Published without a check" in unchecked


def chromium(tmp_path: Path, *arguments: str) -> str:
    assert CHROMIUM is not None
    done = subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def dom(site: Path, tmp_path: Path, path: str) -> str:
    """The page's document after its script ran."""
    return chromium(tmp_path, "--dump-dom", f"{(site / 'index.html').as_uri()}{path}")


def png(site: Path, tmp_path: Path, path: str, size: tuple[int, int], *more: str) -> list[bytes]:
    """Rows of RGB pixels of a screenshot."""
    file = tmp_path / "shot.png"
    window = f"--window-size={size[0]},{size[1]}"
    chromium(tmp_path, f"--screenshot={file}", window, *more, (site / path).as_uri())
    data = file.read_bytes()
    width, height, depth, colour = struct.unpack(">IIBB", data[16:26])
    assert (width, height, depth) == (*size, 8)
    channels = {2: 3, 6: 4}[colour]
    packed, at = b"", 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + length]
        at += 12 + length
    return unfilter(zlib.decompress(packed), width * channels, channels)


def unfilter(raw: bytes, stride: int, channels: int) -> list[bytes]:
    rows: list[bytes] = []
    above = bytes(stride)
    for start in range(0, len(raw), stride + 1):
        kind, row = raw[start], bytearray(raw[start + 1 : start + 1 + stride])
        for at in range(stride):
            left = row[at - channels] if at >= channels else 0
            corner = above[at - channels] if at >= channels else 0
            up = above[at]
            if kind == 1:
                row[at] = (row[at] + left) & 255
            elif kind == 2:
                row[at] = (row[at] + up) & 255
            elif kind == 3:
                row[at] = (row[at] + (left + up) // 2) & 255
            elif kind == 4:
                guess = left + up - corner
                near = min((left, up, corner), key=lambda value: abs(guess - value))
                row[at] = (row[at] + near) & 255
        above = bytes(row)
        rows.append(above)
    return rows


@browser
@pytest.mark.integration
def test_search_and_filters_leave_what_fits(site, tmp_path):
    def shown(path: str) -> list[str]:
        items = re.findall(r'<li class="project"[^>]*>', dom(site, tmp_path, path))
        assert len(items) == 3
        return [item for item in items if "hidden" not in item]

    assert len(shown("")) == 3
    assert len(shown("#q=env")) == 2
    assert len(shown("#q=BREVITY")) == 1
    assert len(shown("#kind=reward")) == 1
    assert len(shown("#level=silver")) == 2
    assert shown("#q=nothing-like-it") == []


@browser
@pytest.mark.integration
@pytest.mark.parametrize("path", ["index.html", "projects/prime-env-sums/index.html"])
def test_it_is_dark_where_dark_is_preferred(site, tmp_path, path):
    def mean(*more: str) -> float:
        rows = png(site, tmp_path, path, (500, 300), *more)
        return sum(map(sum, rows)) / sum(map(len, rows))

    assert mean() > 200
    assert mean("--blink-settings=preferredColorScheme=0") < 90


PROBE = """<!DOCTYPE html><meta charset="utf-8"><iframe src="{page}" width="360" height="640"
onload="const d = this.contentDocument.documentElement;
document.body.dataset.width = d.scrollWidth + '/' + d.clientWidth"></iframe>"""


@browser
@pytest.mark.integration
def test_nothing_is_wider_than_a_phone(site, tmp_path):
    for page in pages(site):
        probe = tmp_path / "probe.html"
        probe.write_text(PROBE.format(page=page.as_uri()))
        flag = "--allow-file-access-from-files"
        found = chromium(tmp_path, flag, "--dump-dom", probe.as_uri())
        width = re.search(r'data-width="(\d+)/(\d+)"', found)
        assert width is not None, found[:500]
        assert int(width[1]) <= int(width[2]) <= 360, page


@browser
@pytest.mark.integration
def test_no_page_breaks_its_own_policy(site, tmp_path):
    assert CHROMIUM is not None
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    for page in pages(site)[:2]:
        done = subprocess.run(
            [CHROMIUM, *FLAGS, profile, "--enable-logging=stderr", "--dump-dom", page.as_uri()],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert "CONSOLE" not in done.stderr, done.stderr
