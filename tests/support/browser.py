"""A real Chromium, of Debian's packages, driven by its own chromedriver through selenium.

What it saw stands at the end: requests that leave the machine, breaches of the content policy,
errors of scripts. As root it runs without its sandbox, which only tests do.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
from PIL import Image
from selenium import webdriver
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    ElementNotInteractableException,
    StaleElementReferenceException,
)
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.remote.webelement import WebElement

from tests.support.failures import ENABLES
from tests.support.processes import holds_within
from tests.support.promised import leave_out

#: A bound on a hang, not a measure of speed (seconds).
PATIENCE_S = 120.0

#: What a picture must have to be one of something: colours, edges of letters among them, below the
#: header, which is there before anything else and so many pixels high. More are not counted.
BELOW_THE_HEADER, LEAST_COLOURS, MOST_COLOURS = 120, 12, 1_000

#: What is drawn anew meanwhile, or lies under something for a moment, is looked at again.
_LATER = (
    StaleElementReferenceException,
    ElementClickInterceptedException,
    ElementNotInteractableException,
)

_WATCH = """
window.breaches = [];
document.addEventListener('securitypolicyviolation',
  (event) => window.breaches.push(`${event.violatedDirective}: ${event.blockedURI}`));
window.faults = [];
addEventListener('error', (event) => window.faults.push(String(event.message)));
addEventListener('unhandledrejection', (event) => window.faults.push(String(event.reason)));
"""


def demand_chromium() -> None:
    """Leave the test out where there is no Chromium; fail it where one is promised."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            leave_out("chromium", f"needs {program}: {ENABLES}")


class Browser:
    """One window.

    Args:
        pictures: the folder for pictures.
        name: a host name that is this machine's for this browser, with any certificate.
    """

    def __init__(self, pictures: Path, name: str = "") -> None:
        self.pictures = pictures
        self._ours = {"127.0.0.1", *([name] if name else [])}
        options = Options()
        options.binary_location = shutil.which("chromium") or ""
        words = ["--headless=new", "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-gpu"]
        words += ["--disable-background-networking", "--disable-component-update", "--no-first-run"]
        words += ["--force-color-profile=srgb", "--force-device-scale-factor=1"]
        if name:
            words += [f"--host-resolver-rules=MAP {name} 127.0.0.1", "--ignore-certificate-errors"]
        if os.getuid() == 0:
            words.append("--no-sandbox")
        for word in words:
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
        service = Service(shutil.which("chromedriver"), env={**os.environ, "SE_OFFLINE": "true"})
        self.driver = webdriver.Chrome(options=options, service=service)
        self.driver.set_script_timeout(PATIENCE_S)
        self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _WATCH})
        self.size(1400, 900)

    def close(self) -> None:
        """End it."""
        self.driver.quit()

    def size(self, width: int, height: int, *, phone: bool = False) -> None:
        """The window's size, as a phone's or not."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 2 if phone else 1,
                   "mobile": phone}  # fmt: skip
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def theme(self, word: str) -> None:
        """What the system prefers: ``dark`` or ``light``."""
        features = [{"name": "prefers-color-scheme", "value": word}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def open(self, url: str) -> None:
        """Go there, with nothing kept from before."""
        self.driver.execute_cdp_cmd("Network.clearBrowserCache", {})
        self.driver.get(url)

    def run(self, script: str, *given: Any) -> Any:
        """The value of a function's body in the page."""
        return self.driver.execute_script(script, *given)

    def until(self, holds: Callable[[], Any], what: str, limit_s: float = PATIENCE_S) -> Any:
        """Wait until something is so, and return it."""
        found: list[Any] = [None]

        def look() -> bool:
            with contextlib.suppress(*_LATER):
                found[0] = holds()
            return bool(found[0])

        if not holds_within(look, limit_s):
            self._kept("failed")
            seen = f"{self.faults()}\n{self.text()[:2000]}"
            raise AssertionError(f"{what}: not within {limit_s} s; {seen}")
        return found[0]

    def text(self, selector: str = "body") -> str:
        """What one sees of an element."""
        found = self.run(
            "const one = document.querySelector(arguments[0]); return one ? one.innerText : ''",
            selector,
        )
        return str(found)

    def waits_for(self, text: str, selector: str = "body", limit_s: float = PATIENCE_S) -> None:
        """Wait until a text is to be seen."""
        self.until(lambda: text in self.text(selector), f"{text!r} in {selector}", limit_s)

    def all(self, selector: str) -> list[WebElement]:
        """Elements of a selector."""
        return self.driver.find_elements("css selector", selector)

    def one(self, selector: str) -> WebElement:
        """The first element of a selector, once it is there."""
        found: list[WebElement] = self.until(lambda: self.all(selector), f"there is {selector}")
        return found[0]

    def click(self, text: str, selector: str = "button") -> None:
        """Click the first that begins with this text, once it is there."""

        def clicks() -> bool:
            for one in self.all(selector):
                if one.text.startswith(text):
                    one.click()
                    return True
            return False

        self.until(clicks, f"a {selector} begins with {text!r}")

    def keys(self, *keys: str) -> None:
        """Press keys one after the other, wherever the focus is."""
        ActionChains(self.driver).send_keys(*keys).perform()

    def page_cpu_s(self) -> float:
        """What the processes of pages have had of processors so far (seconds), however long they
        had to wait for it."""
        spent = 0.0
        for each in psutil.Process(self.driver.service.process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if "--type=renderer" in each.cmdline():
                    times = each.cpu_times()
                    spent += times.user + times.system
        return spent

    def picture(self, name: str) -> Path:
        """Keep a picture of what is to be seen: of more than a frame around nothing."""
        path = self._kept(name)
        with Image.open(path) as picture:
            below = picture.crop((0, BELOW_THE_HEADER, *picture.size)).convert("RGB")
            colours = below.getcolors(MOST_COLOURS)
        assert colours is None or len(colours) >= LEAST_COLOURS, f"nothing is drawn in {path}"
        return path

    def _kept(self, name: str) -> Path:
        path = self.pictures / f"{name}.png"
        self.driver.save_screenshot(str(path))
        return path

    def faults(self) -> list[str]:
        """Errors of scripts, breaches of the policy in this document, and what the console got."""
        found = self.run("return [...(window.breaches ?? []), ...(window.faults ?? [])]") or []
        console = [
            one["message"] for one in self.driver.get_log("browser") if one["level"] == "SEVERE"
        ]
        return [str(one) for one in found] + console

    def strangers(self) -> set[str]:
        """Hosts beside this machine that were asked for something since the last look."""
        hosts = set()
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                params = message["params"]
                split = urlsplit(params.get("request", params).get("url", ""))
                if split.scheme in ("http", "https", "ws", "wss"):
                    hosts.add(split.hostname or "")
        return hosts - self._ours
