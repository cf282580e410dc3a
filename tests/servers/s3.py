"""A real S3 server: `rclone serve s3` over a folder. It does not honour conditional writes."""

import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tests.servers.server import Server

BUCKET = "sameas"
_KEY, _SECRET = "loopback", "loopback-secret"


class S3Server(Server):
    """Objects on loopback, in one bucket."""

    name: ClassVar[str] = "s3"

    @property
    def url(self) -> str:
        """For SAMEAS_OBJECTS; the rest is in `credentials`."""
        return f"s3://{BUCKET}/objects"

    @property
    def credentials(self) -> Mapping[str, str]:
        """What a client has in its environment."""
        return {
            "AWS_ACCESS_KEY_ID": _KEY,
            "AWS_SECRET_ACCESS_KEY": _SECRET,
            "AWS_ENDPOINT_URL": f"http://{self.host}:{self.port}",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }

    def prepare(self) -> None:
        (self.folder / "buckets" / BUCKET).mkdir(parents=True)

    def command(self) -> Sequence[str]:
        program = Path(sys.executable).with_name("rclone")
        keys = f"{_KEY},{_SECRET}"
        return [
            *(str(program), "serve", "s3", "--auth-key", keys, "--addr", f"{self.host}:{self.port}"),
            # Nobody looks at hashes, and making them takes as long as all the rest.
            *("--config", str(self.folder / "none"), "--etag-hash", "", str(self.folder / "buckets")),
        ]

    def is_ready(self) -> bool:
        try:
            urllib.request.urlopen(f"http://{self.host}:{self.port}/", timeout=2.0).close()
        except urllib.error.HTTPError as refusal:
            # It answers; that nobody signed the request is another matter.
            refusal.close()
            return True
        except OSError:
            return False
        return True
