"""The steps of the Dockerfile, done on this machine in root folders of their own, and containers of what comes of them.

No container engine is needed: each stage is a layer over this machine's Debian, which stands for the base image, in a
mount namespace of its own. What a step writes is in its layer and nowhere else. What a container runs sees no file of
the project but those of the image, has a root that it cannot write, no capabilities, and a network of its own if wanted.

One step is done otherwise unless `with_pip`: uv installs the lock, by the same hashes and from the same index, because it
has the packages at hand already and pip would fetch them for a minute.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
BASE = "python:3.11-slim-bookworm"
_PYTHON = "/usr/bin/python3.11"
_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
_PROGRAMS = ("unshare", "nsenter", "chroot", "setpriv", "mount", "useradd", _PYTHON)
# Where a machine says how packages are got, for the steps that install some.
_OF_PIP = re.compile(r"PIP_|UV_|(http|https|no)_proxy$|SSL_CERT_", re.IGNORECASE)
_PIP = "/opt/sameas/bin/pip install"
_UV = "uv pip install --quiet --no-config --system-certs --link-mode copy --python /opt/sameas/bin/python"
_CACHE = "/var/cache/uv"
_NAMESPACE = ("unshare", "--mount", "--propagation", "private")


class NoNamespacesError(RuntimeError):
    """This machine cannot stand for a container engine."""


@dataclass
class Stage:
    """What the Dockerfile says of one stage, and where its root is."""

    root: Path
    steps: list[tuple[str, str]] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=lambda: {"PATH": _PATH})
    user: str = "0:0"
    folder: str = "/"

    def said(self, word: str) -> str:
        """What the last instruction of a kind says."""
        return next(rest for kind, rest in reversed(self.steps) if kind == word)


def instructions(text: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile, each in one line."""
    joined = re.sub(r"\\\n\s*", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE))
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in joined.splitlines() if line.strip()]


class Image:
    """The last stage of the Dockerfile, made by its steps."""

    def __init__(self, folder: Path, *, with_pip: bool = False) -> None:
        self._folder = folder
        self._with_pip = with_pip
        self._stack = ExitStack()
        self._holder: subprocess.Popen[str] | None = None
        self._stages: dict[str, Stage] = {}

    @property
    def last(self) -> Stage:
        return [*self._stages.values()][-1]

    def __enter__(self) -> Self:
        missing = [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]
        if missing or os.geteuid() != 0 or not Path("/etc/debian_version").exists():
            raise NoNamespacesError(f"this takes root on Debian with {', '.join(missing) or 'its programs'}")
        layers = 'mount -t tmpfs -o mode=755 layers "$1" && echo ready && exec sleep infinity'
        self._holder = subprocess.Popen(
            [*_NAMESPACE, "sh", "-c", layers, "sh", str(self._folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._stack.callback(self._end)
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != "ready\n":
            raise NoNamespacesError("this machine makes no mount namespaces")
        try:
            self._build()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _end(self) -> None:
        assert self._holder is not None
        self._holder.kill()
        self._holder.communicate()

    def inside(self, *command: str) -> list[str]:
        """A command that sees the layers."""
        assert self._holder is not None
        # Debian keeps some of these where the PATH of whoever runs the tests need not lead.
        program = [shutil.which(one, path=_PATH) or one for one in command[:1]]
        return ["nsenter", f"--target={self._holder.pid}", "--mount", *program, *command[1:]]

    def _do(self, *command: str) -> None:
        done = subprocess.run(self.inside(*command), capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{shlex.join(command)}: {done.stderr[-2000:]}")

    def _build(self) -> None:
        stage = None
        for word, rest in instructions(DOCKERFILE.read_text()):
            if word == "FROM":
                stage = self._begin(rest)
                continue
            assert stage is not None
            stage.steps.append((word, rest))
            match word:
                case "ENV":
                    stage.env |= {
                        name: value.replace("$PATH", stage.env["PATH"])
                        for name, value in (pair.split("=", 1) for pair in shlex.split(rest))
                    }
                case "USER":
                    stage.user = rest
                case "WORKDIR":
                    stage.folder = rest
                case "RUN":
                    self._run(stage, rest)
                case "COPY":
                    self._copy(stage, rest.split())
                case "VOLUME" | "EXPOSE" | "STOPSIGNAL" | "HEALTHCHECK" | "ENTRYPOINT" | "CMD":
                    pass
                case _:
                    raise AssertionError(f"nobody does the step {word} here")

    def _begin(self, rest: str) -> Stage:
        image, _, name = rest.partition(" AS ")
        if image != BASE:
            raise AssertionError(f"{image} is not what this machine stands for")
        place = self._folder / f"stage-{len(self._stages)}"
        parts = {part: place / part for part in ("upper", "work", "root")}
        self._do("mkdir", "-p", *map(str, parts.values()))
        layers = f"lowerdir=/,upperdir={parts['upper']},workdir={parts['work']}"
        self._do("mount", "-t", "overlay", "-o", layers, "overlay", str(parts["root"]))
        stage = self._stages[name or str(len(self._stages))] = Stage(parts["root"])
        for folder in ("proc", "dev"):
            self._do("mount", "--rbind", f"/{folder}", f"{stage.root}/{folder}")
        # Of this machine nothing is seen that the base image has not: neither the project nor anybody's home.
        for folder in {"/tmp", "/root", "/home", "/opt", "/srv", str(ROOT), sys.prefix}:
            if Path(folder).is_dir():
                self._do("mkdir", "-p", f"{stage.root}{folder}")
                self._do("mount", "-t", "tmpfs", "-o", "mode=1777", "hidden", f"{stage.root}{folder}")
        self._do("sh", "-c", 'rm -rf "$1"/usr/local/bin/python* && ln -s "$2" "$1/usr/local/bin/python"',
                 "sh", str(stage.root), _PYTHON)  # fmt: skip
        return stage

    def _run(self, stage: Stage, command: str) -> None:
        given = {name: value for name, value in os.environ.items() if _OF_PIP.match(name)}
        if _PIP in command and not self._with_pip:
            command = command.replace(_PIP, _UV)
            given |= self._bring_uv(stage)
        asked = self.command(stage, ["/bin/sh", "-c", command], env=given)
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"RUN {command}: {done.stdout[-2000:]}{done.stderr[-2000:]}")

    def _bring_uv(self, stage: Stage) -> dict[str, str]:
        """Have uv and what it has fetched in a stage; gives what it is told."""
        uv = Path(sys.executable).with_name("uv")
        cache = subprocess.run([uv, "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()
        self._do("mkdir", "-p", f"{stage.root}{_CACHE}", cache)
        self._do("mount", "--bind", cache, f"{stage.root}{_CACHE}")
        self._do("cp", str(uv), f"{stage.root}/usr/local/bin/uv")
        # uv looks where pip does.
        asked = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
        index = os.environ.get("PIP_INDEX_URL") or subprocess.run(asked, capture_output=True, text=True).stdout.strip()
        return {"UV_CACHE_DIR": _CACHE, **({"UV_DEFAULT_INDEX": index} if index else {})}

    def _copy(self, stage: Stage, words: list[str]) -> None:
        source, target = words[-2:]
        if words[0].startswith("--from="):
            source = f"{self._stages[words[0].removeprefix('--from=')].root}{source}"
        else:
            source = str(ROOT / source)
        into = f"{stage.root}{target}"
        if target.endswith("/"):
            self._do("mkdir", "-p", into)
            self._do("cp", source, into)
            return
        self._do("mkdir", "-p", str(Path(into).parent))
        self._do("cp", "-rT", source, into)
        if source.startswith(str(ROOT)):
            # `Dockerfile.dockerignore` leaves out what was written beside the sources.
            self._do("find", into, "-name", "__pycache__", "-prune", "-exec", "rm", "-r", "{}", "+")

    def command(
        self, stage: Stage, command: Sequence[str], *, env: Mapping[str, str] | None = None, dropped: bool = False
    ) -> list[str]:
        """A command as a stage runs it."""
        uid, gid = stage.user.split(":")
        words = [
            "env",
            "--ignore-environment",
            *(f"{name}={value}" for name, value in {**(env or {}), **stage.env}.items()),
        ]
        rights = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
        if dropped:
            rights += ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
        shell = 'cd "$1" && shift && exec "$@"'
        return self.inside(
            "chroot", str(stage.root), *words, *rights, "/bin/sh", "-c", shell, "sh", stage.folder, *command
        )  # fmt: skip

    def container(self, *arguments: str, env: Mapping[str, str], own_network: bool = False) -> "Container":
        """What the image runs, with these words behind its entrypoint, or with its own."""
        return Container(self, arguments, env=env, own_network=own_network)


class Container:
    """The entrypoint of the image, with a root that it cannot write and folders in memory under `/data` and `/tmp`."""

    def __init__(self, image: Image, arguments: Sequence[str], *, env: Mapping[str, str], own_network: bool) -> None:
        self._image = image
        self._arguments = arguments or json.loads(image.last.said("CMD"))
        self._stage = image.last
        self._env = {**image.last.env, **env}
        self._own_network = own_network
        self._process: subprocess.Popen[str] | None = None
        self._holder: subprocess.Popen[str] | None = None
        self.log = ""

    def __enter__(self) -> Self:
        root = self._stage.root
        # The namespace of the image, and in it one of the container's own.
        mounts = (
            f"mount -o remount,ro {root} && mount -t tmpfs -o mode=0700,uid=10001,gid=10001 data {root}/data"
            f" && mount -t tmpfs -o mode=1777 tmp {root}/tmp && echo ready && exec sleep infinity"
        )
        spaces = [*_NAMESPACE, *(["--net"] if self._own_network else [])]
        self._holder = subprocess.Popen(
            self._image.inside(*spaces, "sh", "-c", mounts), stdout=subprocess.PIPE, text=True
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != "ready\n":
            raise NoNamespacesError("this machine makes no namespaces in namespaces")
        if self._own_network:
            subprocess.run(self._enter("ip", "link", "set", "lo", "up"), check=True)
        entrypoint = json.loads(self._stage.said("ENTRYPOINT"))
        self._process = subprocess.Popen(
            self._as_container([*entrypoint, *self._arguments]), stderr=subprocess.PIPE, text=True
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in (self._process, self._holder):
            if process is not None:
                process.kill()
                _, said = process.communicate()
                self.log = self.log or said or ""
        if error is not None:
            error.add_note(f"the container said: {self.log[-2_000:]}")

    @property
    def has_ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def stop(self, within: float) -> int:
        """Send what the image asks for, and give how it ended."""
        assert self._process is not None
        assert self._stage.said("STOPSIGNAL") == "SIGTERM"
        self._process.terminate()
        _, self.log = self._process.communicate(timeout=within)
        return self._process.returncode

    def healthcheck(self) -> list[str]:
        """The command that says whether it is well."""
        said = self._stage.said("HEALTHCHECK")
        found: list[str] = json.loads(said[said.index("CMD") + 3 :])
        return found

    def execute(self, *command: str, within: float = 60.0) -> subprocess.CompletedProcess[str]:
        """A command in the container, as `docker exec` and probes run it."""
        return subprocess.run(self._as_container(command), capture_output=True, text=True, check=False, timeout=within)

    def _enter(self, *command: str) -> list[str]:
        assert self._holder is not None
        net = ["--net"] if self._own_network else []
        return ["nsenter", f"--target={self._holder.pid}", "--mount", *net, *command]

    def _as_container(self, command: Sequence[str]) -> list[str]:
        stage = Stage(self._stage.root, env=self._env, user=self._stage.user, folder=self._stage.folder)
        whole = self._image.command(stage, command, dropped=True)
        return self._enter(*whole[len(self._image.inside()) :])
