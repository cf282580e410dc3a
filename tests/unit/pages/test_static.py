"""The static files of the web app: all of them are used and name what is there, and one file holds them safely."""

import json
import re

import pytest

from sameas.pages.files import DOCS, INDEX, POLICY, files, hash_source, single_file

IMPORT = re.compile(r"""^(?:import|export)\b[^;]*?"(\.{1,2}/[^"]+)";""", re.MULTILINE)
ASKED = re.compile(r'(?:src|href)="((?:app|vendor)/[^"]+)"')
ONE_FILE = ("app/file.js", "app/collection_file.js")
HOSTILE = "</script><script>alert(1)</script><!--"


def imports(name):
    folder = name.rpartition("/")[0]
    for path in IMPORT.findall(files()[name].data.decode()):
        yield path.removeprefix("../") if path.startswith("../") else f"{folder}/{path.removeprefix('./')}"


def reached(*starts):
    found, left = set(), list(starts)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left.extend(imports(name))
    return found


def test_every_file_is_used_and_every_name_is_there():
    pages = [files()[name].data.decode() for name in (INDEX, DOCS)]
    asked = {name for page in pages for name in ASKED.findall(page)}
    assert asked <= files().keys()
    # Charts are loaded when the first one is drawn, and the licences are for people.
    later = {"vendor/uPlot.iife.min.js", "vendor/uPlot.min.css", "vendor/NOTICE.txt"}
    modules = reached(*(name for name in (*asked, *ONE_FILE) if name.endswith(".js") and name.startswith("app/")))
    assert modules <= files().keys()
    assert files().keys() - modules - asked - later == {INDEX, DOCS}


def test_pages_hold_no_script_and_no_style_of_their_own():
    for name in (INDEX, DOCS):
        page = files()[name].data.decode()
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=|javascript:", page), name
    assert "unsafe" not in POLICY


@pytest.mark.parametrize("start", ONE_FILE)
def test_one_file_has_all_its_modules_and_its_policy_names_each_script(start):
    pieces = single_file(
        [b'{"name": "', HOSTILE.encode(), b'"}'], start=start, styles=("app/style.css",), title=HOSTILE
    )
    page = b"".join(pieces).decode()
    # Neither data nor title can end the element that they stand in.
    assert "alert(1)</script>" not in page
    data = re.search(r'id="sameas-data">(.*?)</script>', page, re.DOTALL)[1]
    assert json.loads(data) == {"name": HOSTILE}
    map_ = re.search(r'<script type="importmap">(.*?)</script>', page, re.DOTALL)[1]
    assert json.loads(map_)["imports"].keys() == reached(start)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    scripts = re.findall(r'<script(?: type="(?:importmap|module)")?>(.*?)</script>', page, re.DOTALL)
    assert len(scripts) == 4
    assert all(hash_source(script.encode()) in policy for script in scripts)
    assert policy.startswith("default-src 'none';")
    assert "connect-src" not in policy
