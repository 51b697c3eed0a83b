"""The peers: the public `shardcast` 0.3.2 through its middle node, and a plain nginx download."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import time
from pathlib import Path

from broadcasting.tree import free_port, wait_for

PUBLIC = "shardcast==0.3.2"
ORIGIN = """
import sys, time, shardcast
shardcast.initialize(data_dir=sys.argv[1], port=int(sys.argv[2]))
sys.stdin.readline()
print(time.monotonic(), flush=True)
shardcast.broadcast(sys.argv[3])
sys.stdin.readline()
"""
NGINX = """
daemon off; master_process off; pid {dir}/nginx.pid; error_log {dir}/error.log;
events {{ worker_connections 64; }}
http {{ access_log off; sendfile on; tcp_nopush on;
  client_body_temp_path {dir}/t; proxy_temp_path {dir}/t; fastcgi_temp_path {dir}/t;
  uwsgi_temp_path {dir}/t; scgi_temp_path {dir}/t;
  server {{ listen 127.0.0.1:{port}; root {root}; }} }}
"""


def make_venv(folder: Path) -> Path | None:
    """A virtual environment with the public package; None where pip can't get it."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        done = subprocess.run([python, "-m", "pip", "install", "-q", PUBLIC], capture_output=True)
        if done.returncode != 0:
            return None
    return python


def public(python: Path, weights: Path, folder: Path) -> float:
    """Seconds from `broadcast` to the client's verified file, through one middle node.

    The client starts when the middle node has heard of the version, as a polling one would at best.
    """
    up, down = free_port(), free_port()
    for name in ("o", "m", "d"):
        (folder / name).mkdir(parents=True)
    for name in ("o", "m"):
        (folder / name / "data1.bin").write_bytes(bytes(10**6))
    bins = python.parent
    origin = subprocess.Popen(
        [python, "-c", ORIGIN, folder / "o", str(up), weights],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    wait_for(f"127.0.0.1:{up}", "/data1.bin", b"\0")  # the middle node dies without it
    relaying: list[str | Path] = [bins / "shardcast-middle", "--upstream", f"http://127.0.0.1:{up}"]
    relaying += ["--data-dir", folder / "m", "--port", str(down), "--check-interval", "1"]
    middle = subprocess.Popen(relaying, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(f"127.0.0.1:{down}", "/data1.bin", b"\0")
        assert origin.stdin is not None
        assert origin.stdout is not None
        origin.stdin.write("go\n")
        origin.stdin.flush()
        line = origin.stdout.readline()
        while not line.replace(".", "", 1).strip().isdigit():
            line = origin.stdout.readline()
        called = float(line)
        wait_for(f"127.0.0.1:{down}", "/distribution.txt", b"v1")
        out = folder / "d" / "out.bin"
        asking: list[str | Path] = [
            bins / "shardcast-client",
            "--servers",
            f"http://127.0.0.1:{down}",
        ]
        asking += ["--version", "v1", "--output-dir", folder / "d", "--output-file", out]
        quiet = subprocess.DEVNULL
        subprocess.run(asking, check=True, stdout=quiet, stderr=quiet, timeout=900)
        seconds = time.monotonic() - called
        assert out.stat().st_size == weights.stat().st_size
        return seconds
    finally:
        origin.kill()
        middle.kill()
        origin.wait()
        middle.wait()


def nginx(weights: Path, folder: Path) -> float | None:
    """Seconds of a download from nginx and the SHA-256 of the file after it; None without nginx."""
    program = shutil.which("nginx")
    if program is None:
        return None
    folder.mkdir(parents=True)
    port = free_port()
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(dir=folder, port=port, root=weights.parent))
    server = subprocess.Popen([program, "-c", config, "-e", folder / "error.log"])
    try:
        wait_for(f"127.0.0.1:{port}", "/small.txt", b"small")
        out = folder / "out.bin"
        called = time.monotonic()
        url = f"http://127.0.0.1:{port}/{weights.name}"
        subprocess.run(["wget", "-q", "-O", out, url], check=True)
        with out.open("rb") as file:
            hashlib.file_digest(file, "sha256")
        return time.monotonic() - called
    finally:
        server.terminate()
        server.wait()
