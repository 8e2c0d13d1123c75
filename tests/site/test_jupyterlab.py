"""A widget with a kernel behind it: JupyterLab in the browser, its traits read in Python."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from jupyter_client import BlockingKernelClient
from playwright.sync_api import expect

from tests.conftest import ROOT

CHAPTER = "03-chai-piyo-by-hand.ipynb"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Start JupyterLab on a copy of the chapter, with settings of its own; give its address."""
    home = tmp_path_factory.mktemp("lab")
    shutil.copy(ROOT / "chapters" / CHAPTER, home)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folders = {f"JUPYTER_{kind}_DIR": str(home / kind) for kind in ("CONFIG", "DATA", "RUNTIME")}
    options = [
        "--no-browser",
        "--allow-root",
        f"--port={port}",
        f"--ServerApp.root_dir={home}",
        "--ServerApp.disable_check_xsrf=True",
        "--IdentityProvider.token=",
        "--LabApp.news_url=",
        "--LabApp.check_for_updates_class=",
    ]
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *options],
        env={**os.environ, **folders, "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    for _ in range(120):
        try:
            urllib.request.urlopen(f"{address}/api", timeout=1)
            break
        except OSError:
            time.sleep(0.5)
    yield address, home / "RUNTIME"
    server.terminate()
    server.wait(20)


@pytest.fixture(scope="module")
def notebook(lab, browser):
    """The chapter, opened and run from top to bottom, and a line to its kernel."""
    address, runtime = lab
    page = browser.new_page(viewport={"width": 1300, "height": 1000})
    page.goto(f"{address}/lab/tree/{CHAPTER}")
    # jupyterlab-myst draws the opening box; without it the colons would stand there as text.
    box = page.locator(".jp-MarkdownCell").first
    box.locator(".lead strong").wait_for(timeout=60_000)
    assert ":::" not in box.inner_text()
    page.get_by_text("| Idle").wait_for(timeout=60_000)  # earlier JupyterLab asks for a kernel
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    page.locator(".abh-flow fieldset:enabled").first.wait_for(timeout=60_000)
    client = BlockingKernelClient()
    client.load_connection_file(str(next(runtime.glob("kernel-*.json"))))
    client.start_channels()
    # Behind the last cell, whose end moves the focus: a key pressed before it would be lost.
    ask(client, "None")
    page.get_by_text("| Idle").wait_for(timeout=60_000)
    expect(page.get_by_text("[*]:")).to_have_count(0, timeout=60_000)
    yield page, client
    client.stop_channels()
    page.close()


def ask(client, expression):
    """The value of an expression in the notebook's kernel."""
    reply = client.execute_interactive(
        "", user_expressions={"x": expression}, timeout=20, output_hook=lambda _: None
    )
    return eval(reply["content"]["user_expressions"]["x"]["data"]["text/plain"])


def eventually(found, expected):
    for _ in range(100):
        if found() == expected:
            return
        time.sleep(0.1)
    assert found() == expected


def press(slider, key, text):
    """Press a key on a slider, once more if JupyterLab has just taken the focus to a cell."""
    slider.press(key)
    try:
        expect(slider).to_have_attribute("aria-valuetext", text, timeout=2000)
    except AssertionError:
        slider.press(key)
        expect(slider).to_have_attribute("aria-valuetext", text)


def test_arrow_keys_move_the_stage_and_the_trait(notebook):
    page, client = notebook
    slider = page.get_by_role("slider", name="Stage").first
    slider.scroll_into_view_if_needed()
    for place in (3, 4):  # from the stage "qkv", the second, which the chapter opens
        press(slider, "ArrowRight", re.compile(f"Stage {place} of 7"))
    eventually(lambda: ask(client, "flow.stage"), "scale")


def test_a_typed_entry_reaches_the_numpy_arrays(notebook):
    page, client = notebook
    page.get_by_text("Change the words and the numbers").first.click()
    page.get_by_label("X, row 1, column 1").first.fill("2")
    eventually(lambda: ask(client, "flow.x[0][0]"), 2.0)
    assert ask(client, "flow.Q.tolist()") == [[3, 0], [0, 2]]


def test_a_trait_set_in_python_moves_the_page(notebook):
    page, client = notebook
    client.execute_interactive("flow.stage = 'whole'", timeout=20, output_hook=lambda _: None)
    weight = ask(client, "round(float(flow.weights[0, 1]), 3)")
    shown = page.locator(".river:visible [data-cell='G.0.1']").first

    def drawn():
        """The weight as its cell shows it, to two digits or three, before the score above it."""
        return float(shown.get_attribute("aria-label").rpartition(": ")[2].split()[0])

    eventually(lambda: abs(drawn() - weight) < 0.006, True)
