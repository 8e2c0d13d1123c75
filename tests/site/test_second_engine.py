"""Six pages in a second engine, WebKitGTK (Safari's), where `make browser` could install it."""

import shutil
import subprocess
from urllib.parse import urlsplit

import pytest
from selenium import webdriver
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait
from selenium.webdriver.webkitgtk.options import Options
from selenium.webdriver.webkitgtk.service import Service

from tests.conftest import SITE, Zipped, serve
from tools import install

# Comes before the policy of a page, which would forbid it. Its driver does not report the console.
WATCH = """<head><script>
self.noise = [];
for (const kind of ["error", "unhandledrejection", "securitypolicyviolation"]) {
  addEventListener(kind, event => noise.push(`${kind}: ${event.message ?? event.reason
    ?? event.blockedURI ?? event.target.outerHTML}`), true);
}
for (const kind of ["error", "warn"]) {
  console[kind] = (...words) => noise.push(`${kind}: ${words.join(" ")}`);
}
</script>"""


class Watched(Zipped):
    """Each page keeps what goes wrong on it."""

    def text(self, path):
        """Put the watch at the head of a page."""
        text = super().text(path)
        return text.replace(b"<head>", WATCH.encode(), 1) if path.suffix == ".html" else text


@pytest.fixture(scope="module")
def webkit():
    """WebKitGTK's small browser on a screen of its own."""
    program = install.find_second_engine()
    if not program:
        pytest.skip(install.NO_SECOND_ENGINE)
    screen = ["Xvfb", "-displayfd", "1", "-screen", "0", "1280x1000x24", "-nolisten", "tcp"]
    with subprocess.Popen(screen, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as xvfb:
        try:
            display = f":{int(xvfb.stdout.readline())}"
            options = Options()
            options.binary_location = program
            options.add_argument("--automation")
            # With a driver that is named, Selenium asks nobody for one.
            named = Service(shutil.which("WebKitWebDriver"), env={"DISPLAY": display})
            driver = webdriver.WebKitGTK(options=options, service=named)
            yield driver
            driver.quit()
        finally:
            xvfb.terminate()


@pytest.fixture(scope="module")
def watched():
    """The address of the site, whose pages say what goes wrong on them."""
    with serve(SITE, Watched) as address:
        yield address


def show(slot, selector):
    """Return the first visible element of these, brought to the middle of the window at once."""
    found = slot.find_elements(By.CSS_SELECTOR, selector)
    found = next(element for element in found if element.is_displayed())
    scroll = "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})"
    slot.parent.execute_script(scroll, found)
    return found


def press(slot):
    """Press the button of another sentence or question."""
    show(slot, "[aria-pressed=false]").click()


def slide(slot):
    """Take a slider to its end."""
    show(slot, "input[type=range]").send_keys(Keys.END)


def drag(slot):
    """Drag a word of the plane."""
    box = slot.parent.execute_script(
        "return arguments[0].getBoundingClientRect()", show(slot, "[data-word=boat]")
    )
    # By its place: of parts of a drawing the driver says that they cannot be used.
    pointer = ActionBuilder(slot.parent)
    x, y = round(box["x"] + box["width"] / 2), round(box["y"] + box["height"] / 2)
    pointer.pointer_action.move_to_location(x, y).pointer_down()
    pointer.pointer_action.move_to_location(x - 60, y - 40).pointer_up()
    pointer.perform()


def train(slot):
    """Press the first button, Train."""
    show(slot, "button").click()


def write(slot):
    """Press Write."""
    show(slot, "[name=write]").click()


@pytest.mark.parametrize(
    ("name", "widget", "acts"),
    [
        ("index.html", "Swap", [press]),
        ("chapters/01-why-attention.html", "Plane", [press, drag]),
        ("chapters/04-scaling.html", "ScalingExplorer", [slide]),
        ("chapters/13-looking-back.html", "Trainer", [train]),
        ("chapters/15-a-model-that-writes.html", "Writer", [write]),
        ("chapters/16-a-real-encoder.html", "Encoder", [press]),
    ],
)
def test_widgets_live_and_nothing_goes_wrong(webkit, watched, name, widget, acts):
    webkit.get(f"{watched}/{name}")
    webkit.find_element(By.TAG_NAME, "body").send_keys(Keys.SHIFT)
    wait = WebDriverWait(webkit, 30)
    wait.until(lambda driver: driver.find_elements(By.CSS_SELECTOR, "html[data-widgets=ready]"))
    slot = webkit.find_element(By.CSS_SELECTOR, f".widget-slot[data-widget={widget}]")

    def drawn():
        parts = slot.find_elements(By.CSS_SELECTOR, "svg, [data-part=story]")
        return [part.get_attribute("outerHTML") for part in parts]

    for act in acts:
        before = drawn()
        act(slot)
        wait.until(lambda _, before=before: drawn() != before)
    asked = webkit.execute_script(
        "return performance.getEntriesByType('resource').map(e => e.name)"
    )
    assert {urlsplit(url).netloc for url in asked} <= {urlsplit(watched).netloc, ""}
    assert webkit.execute_script("return noise") == []
    assert webkit.find_elements(By.CSS_SELECTOR, ".widget-slot [role=alert]") == []
