# SPDX-License-Identifier: BSD-2-Clause
"""A client of basedpyright's language server, which asks what an editor asks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


class LanguageServer:
    """The server for files of *folder*, whose packages are those of *python*."""

    def __init__(self, folder: Path, python: Path):
        command = [sys.executable, "-c", "from basedpyright.langserver import main; main()", "--stdio"]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder)
        self._folder, self._python, self._asked = folder, str(python), 0
        folders = [{"uri": folder.as_uri(), "name": folder.name}]
        documentation = {"completionItem": {"documentationFormat": ["plaintext"]}}
        capabilities = {
            "workspace": {"configuration": True},
            "textDocument": {"hover": {"contentFormat": ["plaintext"]}, "completion": documentation},
        }
        self._ask("initialize", processId=None, rootUri=None, workspaceFolders=folders, capabilities=capabilities)
        self._send({"method": "initialized", "params": {}})

    def __enter__(self) -> LanguageServer:
        return self

    def __exit__(self, *_: Any) -> None:
        self._ask("shutdown")
        self._send({"method": "exit"})
        self._server.communicate()

    def complete(self, code: str) -> set[str]:
        """Return the names that the end of *code* can be completed to."""
        return {each["label"] for each in (self._at("completion", code, 0) or {"items": ()})["items"]}

    def hover(self, code: str) -> str:
        """Return what is shown for the last name of *code*."""
        found = self._at("hover", code, -1)
        return found["contents"]["value"] if found else ""

    def signatures(self, code: str) -> list[str]:
        """Return the signatures that are shown at the end of *code*, after an opening parenthesis."""
        return [each["label"] for each in (self._at("signatureHelp", code, 0) or {"signatures": ()})["signatures"]]

    def _at(self, question: str, code: str, back: int) -> Any:
        file = self._folder / f"asked_{self._asked}.py"
        document = {"uri": file.as_uri(), "languageId": "python", "version": 1, "text": code}
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        lines = code.split("\n")
        position = {"line": len(lines) - 1, "character": len(lines[-1]) + back}
        return self._ask(f"textDocument/{question}", textDocument={"uri": file.as_uri()}, position=position)

    def _ask(self, method: str, **parameters: Any) -> Any:
        self._asked += 1
        number = self._asked
        self._send({"id": number, "method": method, "params": parameters})
        while True:
            message = self._receive()
            if message.get("id") == number and "method" not in message:
                assert "error" not in message, message
                return message["result"]
            if "method" in message and "id" in message:
                self._send({"id": message["id"], "result": self._answer(message)})

    def _answer(self, message: Any) -> Any:
        if message["method"] != "workspace/configuration":
            return None
        return [{"pythonPath": self._python} for _ in message["params"]["items"]]

    def _send(self, message: dict[str, Any]) -> None:
        text = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._server.stdin is not None
        self._server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
        self._server.stdin.flush()

    def _receive(self) -> Any:
        assert self._server.stdout is not None
        length = 0
        while (line := self._server.stdout.readline()) != b"\r\n":
            assert line, "the language server ended"
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        return json.loads(self._server.stdout.read(length))
