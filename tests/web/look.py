#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Opens the page in headless Chromium, with no device, one and eight, wide and narrow; TAP. Screenshots go into the folder given.

usage: look.py WEB_FAKE FOLDER. Speaks WebDriver (W3C) to chromedriver, of Debian's chromium-driver.
"""
import base64, json, os, re, shutil, subprocess, sys, urllib.request

fake, folder = sys.argv[1:3]
count = failed = 0


def ok(good, what, seen=None):
    global count, failed
    count += 1
    failed += not good
    print(f"{'' if good else 'not '}ok {count} - {what}", flush=True)
    if not good and seen is not None:
        print(f"# {seen}")


if not shutil.which("chromedriver"):
    print("Bail out! no chromedriver: apt-get install chromium-driver")
    sys.exit(1)


class Browser:
    """One window of @width × @height CSS pixels."""

    def __init__(self, width, height):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        for line in self.driver.stdout:
            port = re.search(r"success\w* on port (\d+)", line)
            if port:
                break
        options = {
            "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"],
            "mobileEmulation": {"deviceMetrics": {"width": width, "height": height, "pixelRatio": 1}},
        }
        self.url = f"http://127.0.0.1:{port[1]}/session"
        caps = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}}
        try:
            self.url += "/" + self.ask("", caps)["sessionId"]
        except BaseException:
            self.driver.kill()
            raise

    def ask(self, path, body=None, method=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        return json.load(urllib.request.urlopen(request, timeout=120))["value"]

    def run(self, script):
        return self.ask("/execute/sync", {"script": script, "args": []})

    def close(self):
        self.ask("", method="DELETE")
        self.driver.terminate()
        self.driver.wait()


def look(devices, width):
    server = subprocess.Popen([fake, str(devices)], stdout=subprocess.PIPE, text=True)
    browser = None
    what = f"{devices} devices, {width} pixels"
    try:
        browser = Browser(width, 900)
        browser.ask("/url", {"url": f"http://localhost:{server.stdout.readline().strip()}/"})
        # Until the third picture: rates and lines need two.
        browser.ask("/timeouts", {"script": 100000})
        browser.ask("/execute/async", {"args": [], "script": """
            const done = arguments[0];
            const look = () => (history.get("calls") || []).length > 2 || document.querySelector("#why:not([hidden])") ? done() : setTimeout(look, 100);
            look();"""})
        seen = browser.run("""return {
            cards: document.querySelectorAll("#devices h3").length, rows: document.querySelectorAll("#sessions tbody tr").length,
            wide: document.documentElement.scrollWidth, inner: innerWidth,
            lines: [...document.querySelectorAll("#devices path.line")].filter(p => p.getAttribute("d").includes("L")).length,
            cut: [...document.querySelectorAll(".card h3 span:last-child, .figure span, .pill")].filter(e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline").length,
            text: document.body.innerText };""")
        ok(seen["cards"] == devices, f"{what}: a card for each", seen)
        ok(seen["rows"] == devices, f"{what}: a row for each session", seen)
        ok(seen["inner"] == width and seen["wide"] <= width, f"{what}: nothing reaches beyond the window", seen)
        ok(seen["cut"] == 0, f"{what}: no figure is cut", seen)
        ok(seen["lines"] == devices - (devices > 5), f"{what}: a line for each that is online", seen)
        ok(not re.search("NaN|undefined|Infinity", seen["text"]), f"{what}: no figure is nonsense", seen)
        if not devices:
            ok("Connection refused" in seen["text"], f"{what}: it says why", seen)
        log = [m["message"] for m in browser.ask("/se/log", {"type": "browser"}) if "favicon" not in m["message"]]
        ok(not log, f"{what}: the browser has no complaint", log)
        height = browser.run("return document.documentElement.scrollHeight")
        browser.ask("/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}})
        with open(os.path.join(folder, f"page-{devices}-{width}.png"), "wb") as f:
            f.write(base64.b64decode(browser.ask("/screenshot")))
    finally:
        server.kill()
        if browser:
            browser.close()


os.makedirs(folder, exist_ok=True)
for n in (0, 1, 8):
    for w in (1280, 400):
        look(n, w)
print(f"1..{count}")
sys.exit(failed > 0)
