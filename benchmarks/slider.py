"""From a slider's input to the repaint, at 64 tokens and d_k = 512, beside an empty change.

An empty change is the same event on a slider that nothing listens to: what the browser itself
takes from an input to the end of the next frame. The two are timed in turn, in one run.
"""

import functools
import statistics
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import sync_playwright

from tools.install import find_browser

SITE = Path(__file__).resolve().parent.parent / "_build" / "html"
ROUNDS = 150

TIME = """async (rounds) => {
    const real = document.querySelector(".abh-explorer input[name=d_k]");
    const idle = real.cloneNode();
    idle.style.cssText = "position: fixed; inset: 0 auto auto 0; width: 200px";
    document.body.append(idle);
    const painted = () => new Promise((done) => requestAnimationFrame(() => {
        const channel = new MessageChannel();  // its message comes after the frame is drawn
        channel.port1.onmessage = done;
        channel.port2.postMessage(0);
    }));
    const change = async (slider, value) => {
        const from = performance.now();
        slider.value = value;
        slider.dispatchEvent(new Event("input", {bubbles: true}));
        await painted();
        return performance.now() - from;
    };
    const times = {empty: [], slider: []};
    const top = Number(real.max);
    for (let round = 0; round < rounds; round++) {
        for (const [name, slider] of [["empty", idle], ["slider", real]]) {
            await new Promise((rest) => setTimeout(rest, 5 + 11 * Math.random()));
            times[name].push(await change(slider, top - (round % 2)));
        }
    }
    idle.remove();
    return times;
}"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def main():
    """Print median and 95th percentile of both, at full speed and with the CPU slowed down."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=SITE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("slider to repaint, AttentionExplorer, 64 tokens, d_k = 512 (milliseconds)")
    print(f"{'':14}{'median':>9}{'p95':>9}{'largest':>9}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_browser(), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/index.html")
        page.wait_for_selector("html[data-widgets=ready]")
        page.get_by_label("Sentence").fill(" ".join(f"word{i}" for i in range(64)))
        page.wait_for_timeout(1000)
        session = page.context.new_cdp_session(page)
        for slow in (1, 4):
            session.send("Emulation.setCPUThrottlingRate", {"rate": slow})
            page.evaluate(TIME, 10)
            for name, times in page.evaluate(TIME, ROUNDS).items():
                p95 = statistics.quantiles(times, n=20)[-1]
                row = f"{statistics.median(times):9.1f}{p95:9.1f}{max(times):9.1f}"
                print(f"{name + (f', CPU / {slow}' if slow > 1 else ''):14}{row}")
        browser.close()
    server.shutdown()


if __name__ == "__main__":
    main()
