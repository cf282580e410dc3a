"""The web app at `/`, the API's page at `/docs`, and their files.

Rule: they are the same for everybody and hold nothing of anybody, so that no credential is asked for; what they show
comes from the API. A browser runs nothing but these files, and asks nobody but this server.
"""

from __future__ import annotations

from importlib import resources

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sameas.pages.files import DOCS, INDEX, POLICY, File, files
from sameas.server.http.route import problem_reply
from sameas.server.problems import not_found

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Kept, but asked for again: a new version of the service is a new version of its pages.
    "Cache-Control": "no-cache",
    "Vary": "Accept-Encoding",
}

_EXAMPLE = ("story.txt", "company.ttl")


async def index(request: Request) -> Response:
    return _reply(request, files()[INDEX])


async def docs(request: Request) -> Response:
    return _reply(request, files()[DOCS])


async def example(request: Request) -> Response:
    """The story and the ontology of the demo, for a first try."""
    name = request.path_params["name"]
    if name not in _EXAMPLE:
        return problem_reply(not_found("such example", todo=f"there are {', '.join(_EXAMPLE)}"))
    data = (resources.files("sameas.example") / name).read_bytes()
    request.scope["sameas.note"].route = "/app/example/{name}"
    return Response(data, media_type="text/plain; charset=utf-8", headers=_HEADERS)


async def file(request: Request) -> Response:
    name = request.url.path.lstrip("/")
    found = files().get(name)
    if found is None:
        return problem_reply(not_found("such file", todo="the web app is at /"))
    return _reply(request, found)


def _reply(request: Request, found: File) -> Response:
    request.scope["sameas.note"].route = f"/{found.name}"
    headers = {**_HEADERS, "ETag": found.etag}
    if request.headers.get("if-none-match") == found.etag:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.packed, media_type=found.media_type, headers={**headers, "Content-Encoding": "gzip"})
    return Response(found.data, media_type=found.media_type, headers=headers)


PAGES = (
    Route("/", index),
    Route("/docs", docs),
    Route("/app/example/{name}", example),
    Route("/app/{name:path}", file),
    Route("/vendor/{name:path}", file),
)
