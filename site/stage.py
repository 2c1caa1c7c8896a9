"""Stages the pages of the two sites: stage.py FOLDER, from the root of the repository.

The English site has docs/ and the runbooks, the Chinese one README.zh.md and docs/zh; it is served below zh/. In the
repository a page leads to files. Here a link leads to the page of the same site or of the other one, or to GitHub.
"""

import posixpath
import re
import shutil
import sys
from pathlib import Path

REPOSITORY = "https://github.com/benchwatch/benchwatch/blob/main/"
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def place(source):
    """Returns the site and the page there of a file of the repository; None for a file that is on neither."""
    if source in ("README.md", "docs/README.md", "docs"):
        return "en", "README.md"
    if source == "README.zh.md":
        return "zh", "README.md"
    if source.startswith("docs/images/"):
        return None, source.removeprefix("docs/")  # both have them
    if source.startswith("docs/zh/"):
        return "zh", source.removeprefix("docs/zh/")
    if source == "alerts/runbooks":
        return "en", "runbooks/README.md"
    if source.startswith("alerts/runbooks/"):
        return "en", source.removeprefix("alerts/")
    if source.startswith("docs/") and source.endswith(".md"):
        return "en", source.removeprefix("docs/")
    return None


def address(site, page):
    """Returns the address of a page below the root of both sites."""
    page = page.removesuffix("README.md") if page.endswith("README.md") else page.removesuffix(".md") + "/"
    return posixpath.join("zh" if site == "zh" else "", page)


def rewrite(text, source, site, page):
    """Returns a page whose links lead to the right places of the sites."""
    # Zensical takes links as relative to the file, and adapts them to the page's address.
    here = posixpath.join("/", "zh" if site == "zh" else "", posixpath.dirname(page))

    def link(match):
        to, hash_, anchor = match[1].partition("#")
        if not to or "://" in to:
            return match[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), to))
        found = place(target)
        if found is None:
            return f"]({REPOSITORY}{target}{hash_}{anchor})"
        if found[0] in (site, None):
            return f"]({posixpath.relpath(found[1], posixpath.dirname(page) or '.')}{hash_}{anchor})"
        return f"]({posixpath.relpath('/' + address(*found), here)}/{hash_}{anchor})"

    out, last = [], 0
    for code in CODE.finditer(text):
        out += [LINK.sub(link, text[last : code.start()]), code[0]]
        last = code.end()
    return "".join(out) + LINK.sub(link, text[last:])


def main(folder):
    sources = ["README.zh.md"] + [str(p) for p in (*Path("docs").rglob("*.md"), *Path("alerts/runbooks").glob("*.md"))]
    for source in sources:
        site, page = place(source)
        file = Path(folder, site, "docs", page)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(rewrite(Path(source).read_text("utf-8"), source, site, page), "utf-8")
    names = sorted(p.stem for p in Path("alerts/runbooks").glob("*.md"))
    Path(folder, "en/docs/runbooks/README.md").write_text(
        "# Runbooks of the alerts\n\n" + "".join(f"- [{name}]({name}.md)\n" for name in names), "utf-8"
    )
    for site in ("en", "zh"):
        shutil.copytree("docs/images", Path(folder, site, "docs/images"))
        shutil.copy("site/site.css", Path(folder, site, "docs"))
    configuration = Path("site/mkdocs.yml").read_text("utf-8")
    moved = [line.split() for line in Path("site/redirects.txt").read_text("utf-8").splitlines()]
    redirects = "".join(f"        {before}: {after}\n" for before, after in moved)
    Path(folder, "en/mkdocs.yml").write_text(
        configuration.replace("  - search\n", "  - search\n  - redirects:\n      redirect_maps:\n" + redirects), "utf-8"
    )
    # The Chinese site has the settings of the English one, and its own words.
    own = Path("site/zh.yml").read_text("utf-8")
    names = re.findall(r"^(\w+):", own, re.MULTILINE)
    kept = [part for part in re.split(r"^(?=\w)", configuration, flags=re.MULTILINE) if part.split(":")[0] not in names]
    Path(folder, "zh/mkdocs.yml").write_text(
        "".join(kept).replace("  language: en\n", "  language: zh\n") + own, "utf-8"
    )


main(sys.argv[1])
