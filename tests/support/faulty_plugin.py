"""One raw plugin that is right in everything, and many with one fault planted in it.

It uses none of our code. It keeps two files on the target: ``a`` and ``b`` in a folder.
"""

from __future__ import annotations

import sys
from pathlib import Path

_SCRIPT = """\
#!{python} -IS
import base64, json, os, sys

FAULT = {fault!r}
LIMIT = {limit}
BATCH = "preflight-tui/batch"
TEXTS = dict(a=b"first", b="second, with \\u00e4".encode())
buffer = bytearray()
ended = False
queue = []
state = dict(ready=False, op=0)

def write(frame):
    if FAULT != "no jsonrpc":
        frame = dict(frame, jsonrpc="2.0")
    view = memoryview(json.dumps(frame).encode() + b"\\n")
    while view:
        view = view[os.write(1, view):]

def read():
    global ended
    while True:
        end = buffer.find(b"\\n")
        if end >= 0:
            line = bytes(buffer[:end])
            del buffer[:end + 1]
        elif ended:
            line = bytes(buffer)
            buffer.clear()
            if not line:
                stop()
        else:
            chunk = os.read(0, 1 << 20)
            ended = not chunk
            buffer.extend(chunk)
            continue
        if FAULT == "dies of a byte order mark" and line.startswith(b"\\xef\\xbb\\xbf"):
            raise SystemExit("a byte order mark")
        line = line.removeprefix(b"\\xef\\xbb\\xbf")
        if FAULT == "chokes on carriage returns" and line.endswith(b"\\r"):
            raise SystemExit("a carriage return")
        if len(line) - line.endswith(b"\\r") > LIMIT:
            if FAULT == "dies of a large line":
                raise SystemExit("too large")
            seen = json.loads(line)
            refuse(seen["id"], -32020, "too large")
        elif line.strip():
            try:
                frame = json.loads(line)
            except ValueError:
                if FAULT == "dies of what is no JSON":
                    raise
                refuse(None, -32700, "no JSON")
                continue
            if isinstance(frame, dict):
                return frame
            refuse(None, -32600, "no object")

def stop():
    if FAULT == "does not exit":
        while True:
            import signal
            signal.pause()
    if FAULT == "leaves a child" and os.fork() == 0:
        for fd in (0, 1, 2):
            os.close(fd)
        import time
        time.sleep(60)
    os._exit(0)

def refuse(id, code, message):
    write(dict(id=id, error=dict(code=code, message=message)))

def answer(id, result):
    if FAULT == "echoes ids as text":
        id = str(id)
    write(dict(id=id, result=result))
    if FAULT == "answers twice" and state["ready"]:
        write(dict(id=id, result=result))

class Cancelled(Exception):
    pass

def is_id(id):
    return isinstance(id, (int, str)) and not isinstance(id, bool)

def refusal(frame):
    id = frame["id"]
    if not is_id(id) and FAULT != "takes any id":
        return None, -32600, "no id"
    if id in state.get("calls", ()) and FAULT != "takes an id twice":
        return id, -32600, "in flight"
    method = frame["method"]
    if method == "initialize":
        if state["ready"] and FAULT != "shakes hands twice":
            return id, -32011, "a second time"
        low = frame["params"].get("min_protocol_version", 0)
        if low > 2 and FAULT != "takes any version":
            return id, -32010, "no common version"
    elif not state["ready"] and FAULT != "works before the handshake":
        return id, -32011, "before initialize"
    elif method not in METHODS:
        if FAULT == "answers unknown methods":
            return None
        return id, -32601, "unknown"
    return None

def op(call, method, **params):
    state["op"] += 1
    id = state["op"]
    write(dict(id=id, method=method, params=params))
    while True:
        frame = read()
        if "method" not in frame:
            if frame["id"] == id:
                return frame
        elif frame["method"] == "cancel":
            late = FAULT == "ignores a cancel at a later operation" and id > 1
            if frame["params"].get("id") == call and FAULT != "ignores a cancel" and not late:
                if FAULT != "keeps its operation":
                    write(dict(method="cancel", params=dict(id=id)))
                raise Cancelled
        elif "id" in frame:
            refused = refusal(frame)
            if refused:
                refuse(*refused)
            else:
                queue.append(frame)

def output(text):
    write(dict(method="output", params=dict(line=text)))

def get(call, path):
    frame = op(call, "get_file", path=path)
    return base64.b64decode(frame["result"]["data"]) if "result" in frame else None

def put(call, path, data):
    op(call, "put_file", path=path, data=base64.b64encode(data).decode())

def check(call, args):
    if "folder" not in args:
        return dict(needs_change=False, error="folder is needed")
    folder = args["folder"]
    if FAULT == "a check that writes":
        put(call, "/var/checked", b"x")
    found = {{name: get(call, folder + "/" + name) for name in TEXTS}}
    if FAULT == "sees half":
        del found["b"]
    needed = any(found[name] != TEXTS[name] for name in found)
    if FAULT == "never done":
        needed = True
    result = dict(needs_change=needed, message="looked")
    if FAULT == "a check without its result":
        del result["needs_change"]
    return result

def apply(call, args):
    if "folder" not in args:
        return dict(error="folder is needed")
    output("writing")
    if FAULT == "prints":
        os.write(1, b"debug: here\\n")
    if FAULT == "large frames":
        output("x" * 5000)
    for name in TEXTS:
        path = args["folder"] + "/" + name
        put(call, path, TEXTS[name])
    if FAULT == "adds up":
        old = get(call, args["folder"] + "/log") or b""
        put(call, args["folder"] + "/log", old + b"applied\\n")
    return dict(message="wrote")

def batch(one):
    def run(call, params):
        results = []
        for item in params["items"]:
            args = dict(params["common"], **item["args"])
            if FAULT == "forgets what is common":
                args = item["args"]
            result = one(call, args)
            if FAULT == "stops at a bad item" and result.get("error"):
                break
            if FAULT == "a batch that finds otherwise" and one is check:
                result = dict(needs_change=False)
            results.append(dict(result, index=item["index"]))
        if FAULT == "loses the last item of an apply" and one is apply:
            results.pop()
        write(dict(method="progress", params=dict(id=call, results=results[:1])))
        return dict(results=results[1:])
    return run

def single(one):
    return lambda call, params: one(call, params.get("args") or {{}})

METHODS = dict(check=single(check), apply=single(apply),
               check_batch=batch(check), apply_batch=batch(apply), initialize=None)

def initialize(frame):
    if FAULT == "speaks first":
        output("hello")
    result = dict(protocol_version=2, min_protocol_version=2, name="demo", version="1",
                  capabilities=[BATCH, "preflight-tui/params-schema"], max_message_bytes=LIMIT,
                  params_schema=dict(type="object", required=["folder"]))
    result.update(OVER.get(FAULT, {{}}))
    answer(frame["id"], {{name: said for name, said in result.items() if said is not None}})
    state["ready"] = True

OVER = {{
    "another name": dict(name="other"),
    "another version": dict(protocol_version=4, min_protocol_version=3),
    "odd capabilities": dict(capabilities="batch"),
    "a schema that is none": dict(params_schema=dict(type="objekt")),
    "a schema from elsewhere": dict(params_schema={{"$ref": "http://example.com/a"}}),
    "a schema against its own params": dict(params_schema=dict(required=["other"])),
    "of the base protocol": dict(capabilities=[], max_message_bytes=None),
}}

def serve(frame):
    if "id" not in frame:
        if FAULT == "dies of unknown notifications" and frame["method"] != "cancel":
            raise SystemExit("unknown")
        if FAULT == "dies of an idle cancel" and frame["method"] == "cancel":
            raise SystemExit("unknown id")
        return
    refused = refusal(frame)
    if refused:
        return refuse(*refused)
    id, method = frame["id"], frame["method"]
    if method == "initialize":
        return initialize(frame)
    state["calls"] = (id,)
    try:
        result = METHODS.get(method, lambda *_: {{}})(id, frame.get("params") or {{}})
    except Cancelled:
        state["calls"] = ()
        refuse(id, -32800, "cancelled")
        while FAULT == "deaf after a cancel":
            read()
        return
    state["calls"] = ()
    answer(id, result)
    if FAULT == "output after the result":
        output("done")

while True:
    one = queue.pop(0) if queue else read()
    if one.get("method"):
        serve(one)
"""

LIMIT = 100_000
PARAMS: dict[str, object] = {"folder": "/srv/demo"}


def lay_faulty(folder: Path, fault: str = "") -> Path:
    """Write the plugin ``demo`` with one fault, or without any; gives its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "preflight-plugin-demo"
    text = _SCRIPT.format(python=sys.executable, fault=fault, limit=LIMIT)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


FAULTS = {
    "another version": "V2-HS-02",
    "another name": "V2-HS-03",
    "odd capabilities": "V2-HS-04",
    "takes any version": "V2-HS-05",
    "works before the handshake": "V2-OR-01",
    "shakes hands twice": "V2-OR-02",
    "speaks first": "V2-OR-03",
    "output after the result": "V2-OR-04",
    "no jsonrpc": "V2-FR-01",
    "dies of unknown notifications": "V2-FR-02",
    "chokes on carriage returns": "V2-FR-04",
    "dies of what is no JSON": "V2-FR-05",
    "dies of a byte order mark": "V2-FR-06",
    "echoes ids as text": "V2-ID-01",
    "answers twice": "V2-ID-03",
    "answers unknown methods": "V2-ID-04",
    "takes any id": "V2-ID-05",
    "takes an id twice": "V2-ID-07",
    "prints": "V2-SO-01",
    "dies of a large line": "V2-OV-01",
    "large frames": "V2-OV-03",
    "does not exit": "V2-EO-01",
    "leaves a child": "V2-EO-01",
    "a schema that is none": "V2-SC-01",
    "a schema from elsewhere": "V2-SC-01",
    "a schema against its own params": "V2-SC-02",
    "a check without its result": "V2-IM-01",
    "a check that writes": "V2-IM-02",
    "never done": "V2-IM-03",
    "adds up": "V2-IM-04",
    "ignores a cancel": "V2-GR-01",
    "dies of an idle cancel": "V2-CA-01",
    "keeps its operation": "V2-CA-02",
    "ignores a cancel at a later operation": "V2-CO-01",
    "deaf after a cancel": "V2-CO-02",
    "sees half": "V2-KO-01",
    "a batch that finds otherwise": "V2-BA-01",
    "stops at a bad item": "V2-BA-01",
    "loses the last item of an apply": "V2-BA-02",
    "forgets what is common": "V2-BA-03",
}
"""Each fault that can be planted, and the one requirement that it breaks."""
