"""Run three chapters at once on a JupyterHub of this machine: `python -m tools.hub`.

Shows that the environment serves a class. The hub is the version that the chart named in
teaching.md installs; it and its proxy go beside .venv, held to the versions of requirements.txt,
and every server and kernel runs in .venv. Three users log in with three browsers, each opens
another chapter in JupyterLab and runs all of it. Their memory goes to benchmarks/hub.md, which
the page includes; all else is removed.
"""

import asyncio
import contextlib
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import psutil
from playwright.async_api import Error as BrowserError
from playwright.async_api import async_playwright

from tools.install import REQUIREMENTS, ROOT, SetupError, find_browser, pip_install, say

# The chart's own proxy is a Node program of the same name; this one needs no Node.
PACKAGES = ["jupyterhub==5.5.0", "configurable-http-proxy==0.4.0"]
PROXY = [sys.executable, "-c", "from configurable_http_proxy.cli import main; main()"]
# A chapter in NumPy alone, one that imports torch, one with the trained model.
CLASS = {
    "ada": "10-what-it-costs.ipynb",
    "emmy": "08-the-encoder-layer.ipynb",
    "grace": "13-a-real-encoder.ipynb",
}
TABLE = ROOT / "benchmarks" / "hub.md"
SECONDS_TO_START, SECONDS_TO_RUN = 300, 600  # for a slow machine with other work


class HubError(Exception):
    """What did not work, in one line."""


def free_ports(count):
    """Return ports of 127.0.0.1 that nobody listens on."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def settings(homes, password):
    """Return the hub's settings; its `bind_url` is where the class logs in."""
    public, api, internal = free_ports(3)
    return {
        "JupyterHub.bind_url": f"http://127.0.0.1:{public}",
        "JupyterHub.hub_bind_url": f"http://127.0.0.1:{internal}",
        "ConfigurableHTTPProxy.api_url": f"http://127.0.0.1:{api}",
        "ConfigurableHTTPProxy.command": PROXY,
        "JupyterHub.authenticator_class": "dummy",
        "DummyAuthenticator.password": password,
        "Authenticator.allowed_users": {*CLASS},
        "JupyterHub.spawner_class": "simple",
        "SimpleLocalProcessSpawner.home_dir_template": f"{homes}/{{username}}",
        "Spawner.ip": "127.0.0.1",
        "Spawner.notebook_dir": "~",
        "Spawner.cmd": [sys.executable, "-m", "jupyterhub.singleuser"],
        "Spawner.args": ["--allow-root", "--LabApp.news_url="],
        "Spawner.environment": {"OMP_NUM_THREADS": "1"},
        "Spawner.start_timeout": SECONDS_TO_START,
        "Spawner.http_timeout": SECONDS_TO_START,
    }


@contextlib.contextmanager
def hub(folder):
    """Start a hub in `folder`; give its process and address; stop all that it started."""
    packages, homes, password = folder / "packages", folder / "homes", secrets.token_hex()
    say("Installing JupyterHub beside .venv ...")
    pip_install("--constraint", str(REQUIREMENTS), "--target", str(packages), *PACKAGES)
    for user, chapter in CLASS.items():
        hand_out(ROOT / "chapters" / chapter, homes / user)
    chosen = settings(homes, password)
    config, log = folder / "config.py", folder / "hub.log"
    config.write_text("".join(f"c.{name} = {value!r}\n" for name, value in chosen.items()))
    with log.open("w") as output:
        process = psutil.Popen(
            [sys.executable, "-m", "jupyterhub", f"--config={config}"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(packages)},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for_start(process, log)
        yield process, chosen["JupyterHub.bind_url"], password
    finally:
        stop(process)


def stop(process):
    """End a hub and all that it started, whatever state it is in."""
    with contextlib.suppress(psutil.NoSuchProcess):
        started = process.children(recursive=True)
        process.terminate()  # it ends its proxy and the servers, these their kernels
        _, left = psutil.wait_procs([process, *started], timeout=30)
        for each in left:
            each.kill()


def hand_out(chapter, home):
    """Put a chapter without its outputs into a home."""
    notebook = nbformat.read(chapter, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    home.mkdir(parents=True)
    nbformat.write(notebook, home / chapter.name)


def wait_for_start(process, log):
    """Return once the hub says that it can be reached."""
    end = time.monotonic() + SECONDS_TO_START
    while "JupyterHub is now running" not in log.read_text():
        if process.poll() is not None or time.monotonic() > end:
            said = log.read_text().strip().splitlines() or ["nothing"]
            raise HubError(f"the hub did not start; the last it said: {said[-1]}")
        time.sleep(0.2)


class Student:
    """A user of the hub with a browser and a chapter."""

    def __init__(self, name, browser, process, folder):
        self.name, self.chapter = name, CLASS[name]
        self.file = folder / "homes" / name / self.chapter
        self.browser, self.process = browser, process
        self.seconds = self.kernel = self.memory = 0

    async def attend(self, address, password):
        """Log in, run the chapter, use a widget; an error says whose it is."""
        context = await self.browser.new_context(viewport={"width": 1300, "height": 1000})
        try:
            page = await context.new_page()
            await self.log_in(page, address, password)
            await self.run(page)
            await self.ask_a_widget(page)
            say(f"  {self.name} has run {self.chapter}")
        except BrowserError as error:
            reason = re.sub(r"\s+", " ", error.message)[:200]
            raise HubError(f"{self.name}, {self.chapter}: {reason}") from error
        finally:
            await context.close()

    async def log_in(self, page, address, password):
        """Open the chapter in JupyterLab by way of the log-in page."""
        page.set_default_timeout(SECONDS_TO_START * 1000)
        await page.goto(f"{address}/hub/user-redirect/lab/tree/{self.chapter}")
        await page.get_by_label("Username").fill(self.name)
        await page.get_by_label("Password").fill(password)
        await page.get_by_role("button", name="Sign in").click()
        await page.get_by_text("| Idle").wait_for()  # the kernel is there

    async def run(self, page):
        """Run all cells and save until the file has them all; keep time and largest memory."""
        start = time.monotonic()
        await page.get_by_role("menuitem", name="Run", exact=True).click()
        await page.get_by_text("Run All Cells", exact=True).click()
        while not self.finished():
            if time.monotonic() - start > SECONDS_TO_RUN:
                raise HubError(f"{self.name}, {self.chapter}: not done in {SECONDS_TO_RUN} s")
            await asyncio.sleep(1)
            self.weigh()
            await page.keyboard.press("Control+s")
        self.seconds = time.monotonic() - start

    def finished(self):
        """Tell whether every code cell of the saved file has run; raise if one failed."""
        try:
            cells = nbformat.read(self.file, as_version=4).cells
        except nbformat.reader.NotJSONError:
            return False  # it is being saved
        code = [cell for cell in cells if cell.cell_type == "code"]
        for number, cell in enumerate(code, start=1):
            for output in cell.outputs:
                if output.output_type == "error":
                    what = f"{output.ename}: {output.evalue}".splitlines()[0]
                    raise HubError(f"{self.name}, {self.chapter}, code cell {number}: {what}")
        return all(cell.execution_count for cell in code)

    def weigh(self):
        """Keep the largest resident memory seen: of the kernel, and of all the user's processes."""
        total = 0
        for process in self.process.children(recursive=True):
            with contextlib.suppress(psutil.Error):  # it has ended since
                if process.environ().get("JUPYTERHUB_USER") == self.name:
                    size = process.memory_info().rss
                    total += size
                    if "ipykernel_launcher" in process.cmdline():
                        self.kernel = max(self.kernel, size)
        self.memory = max(self.memory, total)

    async def ask_a_widget(self, page):
        """Answer the chapter's prediction and see the widget reply."""
        widget = page.locator(".abh", has=page.locator("[name=check]:enabled")).first
        await widget.locator("input").first.fill("1")
        before = await widget.inner_text()
        await widget.locator("[name=check]").click()
        end = time.monotonic() + SECONDS_TO_START
        while await widget.inner_text() == before:
            if time.monotonic() > end:
                raise HubError(f"{self.name}, {self.chapter}: a widget does not reply")
            await asyncio.sleep(0.1)


async def hold_class(process, address, password, folder):
    """Let all users work at once and return them."""
    path = find_browser()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        students = [Student(name, browser, process, folder) for name in CLASS]
        await asyncio.gather(*(each.attend(address, password) for each in students))
        await browser.close()
    return students


def table(students):
    """Return what was measured as Markdown."""
    lines = [
        "| user | chapter | seconds | kernel, MB | with its server, MB |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {each.name} | {int(each.chapter[:2])} | {each.seconds:.0f} | {each.kernel / 1e6:.0f} "
        f"| {each.memory / 1e6:.0f} |"
        for each in students
    ]
    largest = max(each.memory for each in students)
    lines += ["", f"If all need as much as the largest, {largest / 1e6:.0f} MB, then:", ""]
    lines += ["| students at the same time | memory |", "|---|---|"]
    lines += [f"| {count:,} | {count * largest / 1e9:,.0f} GB |" for count in (10, 100, 10_000)]
    return "\n".join(lines) + "\n"


def main():
    """Hold a class of three, print and store the table; return what to exit with."""
    try:
        with tempfile.TemporaryDirectory(prefix="hub-") as folder:
            with hub(Path(folder)) as (process, address, password):
                say(f"Three users run a chapter each at {address} ...")
                students = asyncio.run(hold_class(process, address, password, Path(folder)))
    except (HubError, SetupError) as error:
        return f"Stopped: {error}"
    except KeyboardInterrupt:
        return "\nStopped; the hub has ended and its folder is removed."
    TABLE.write_text(table(students), encoding="utf-8")
    say(TABLE.read_text(encoding="utf-8").rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
