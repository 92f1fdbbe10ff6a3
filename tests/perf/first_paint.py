"""`python -m tandem`, with somebody watching its first paint; run by `bench_start.py`.

    python tests/perf/first_paint.py ANSWER.json

Imports nothing before the app that the app would not import itself, apart from `runpy` and psutil's memory reading.
"""

from __future__ import annotations

import json
import runpy
import sys
import time
from pathlib import Path
from typing import Any, Final

HEAVY: Final = (
    "llama_cpp", "numpy", "scipy", "pygments", "jinja2", "gguf", "rich", "pyqtgraph", "huggingface_hub", "cpuinfo",
    "markdown_it", "asyncio",
)  # fmt: skip
"""Modules that take time or memory and that an empty window does not need."""

SETTLE_S: Final = 2.0
QUIT_AFTER_S: Final = 60.0


def watch(answer: Path) -> None:
    """Has the first paint noted, the memory a while after the engine came up, and the window closed then."""
    import psutil
    from PySide6.QtCore import QEvent, QObject, QTimer
    from PySide6.QtWidgets import QApplication, QWidget

    found: dict[str, Any] = {}

    class Watch(QObject):
        """Sees every event of the application until the first paint."""

        def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  (Qt's name)
            """Notes what is imported when the painting begins, and the time when this round of it has ended."""
            if not found and event.type() == QEvent.Type.Paint and isinstance(watched, QWidget):
                found["modules"] = sorted(sys.modules)
                QTimer.singleShot(0, self, self.painted)
            return False

        def painted(self) -> None:
            """The first paint is done."""
            found["painted"] = time.monotonic()
            found["painted_mb"] = psutil.Process().memory_info().rss / 1e6
            QApplication.instance().removeEventFilter(self)
            self.window = next(widget for widget in QApplication.topLevelWidgets() if widget.isVisible())
            self.settle = QTimer(self, interval=100)
            self.settle.timeout.connect(self.look)
            self.settle.start()

        def look(self) -> None:
            """Waits until the engine has loaded its pair and sleeps."""
            engines = [child for child in psutil.Process().children() if "spawn_main" in " ".join(child.cmdline())]
            loaded = engines and all(engine.status() == psutil.STATUS_SLEEPING for engine in engines)
            since = time.monotonic() - found["painted"]
            if (loaded and since > SETTLE_S) or since > QUIT_AFTER_S:
                found["settled_mb"] = psutil.Process().memory_info().rss / 1e6
                found["settled_modules"] = sorted(sys.modules)
                found["engines"] = len(engines)
                answer.write_text(json.dumps(found))
                self.settle.stop()
                self.window.close()

    original = QApplication.exec

    def execute() -> int:
        watcher = Watch()
        QApplication.instance().installEventFilter(watcher)
        code = original()
        QApplication.instance().removeEventFilter(watcher)
        return code

    QApplication.exec = staticmethod(execute)  # type: ignore[method-assign]


if __name__ == "__main__":
    target = Path(sys.argv[1])
    del sys.path[0]  # this file's folder, which `python -m tandem` does not have
    watch(target)
    sys.argv = ["tandem"]
    runpy.run_module("tandem", run_name="__main__", alter_sys=True)
