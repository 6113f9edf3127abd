"""A real Chromium, of Debian's packages, driven by its own chromedriver through selenium.

What it saw stands at the end: requests that leave the machine, breaches of the content policy,
errors of scripts. As root it runs without its sandbox, which only tests do.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.remote.webelement import WebElement

from tests.support.failures import ENABLES
from tests.support.processes import holds_within

_WATCH = """
window.breaches = [];
document.addEventListener('securitypolicyviolation',
  (event) => window.breaches.push(`${event.violatedDirective}: ${event.blockedURI}`));
window.faults = [];
addEventListener('error', (event) => window.faults.push(String(event.message)));
addEventListener('unhandledrejection', (event) => window.faults.push(String(event.reason)));
"""


def demand_chromium() -> None:
    """Leave the test out where there is no Chromium, with the command that brings it."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}: {ENABLES}")


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
        self.driver.set_script_timeout(30)
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

    def until(self, holds: Callable[[], Any], what: str, limit_s: float = 30.0) -> Any:
        """Wait until something is so, and return it."""
        found: list[Any] = []

        def look() -> bool:
            found[:] = [holds()]
            return bool(found[0])

        if not holds_within(look, limit_s):
            self.picture("failed")
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

    def waits_for(self, text: str, selector: str = "body", limit_s: float = 30.0) -> None:
        """Wait until a text is to be seen."""
        self.until(lambda: text in self.text(selector), f"{text!r} in {selector}", limit_s)

    def all(self, selector: str) -> list[WebElement]:
        """Elements of a selector."""
        return self.driver.find_elements("css selector", selector)

    def one(self, selector: str) -> WebElement:
        """The first element of a selector."""
        return self.driver.find_element("css selector", selector)

    def click(self, text: str, selector: str = "button") -> None:
        """Click the first that begins with this text."""
        for one in self.all(selector):
            if one.text.startswith(text):
                one.click()
                return
        raise AssertionError(f"no {selector} begins with {text!r}")

    def keys(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def picture(self, name: str) -> Path:
        """Keep a picture of what is to be seen."""
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
