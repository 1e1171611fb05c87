"""The guest's files, as an archive that the kernel unpacks (cpio, "newc"): owners and modes are ours to choose, so
nobody needs to be root."""
import os
import pathlib
import stat


class Archive:
    def __init__(self):
        self.entries, self.names = [], set()

    def add(self, name, kind, mode, data=b"", uid=0):
        name = name.strip("/")
        for parent in reversed(pathlib.PurePath(name).parents[:-1]):
            if str(parent) not in self.names:
                self.add(str(parent), stat.S_IFDIR, 0o755)
        if name not in self.names:
            self.names.add(name)
            self.entries.append((name, kind | mode, data, uid))

    def directory(self, name, mode=0o755, uid=0):
        self.add(name, stat.S_IFDIR, mode, uid=uid)

    def file(self, name, data, mode=0o644, uid=0):
        self.add(name, stat.S_IFREG, mode, data if isinstance(data, bytes) else data.encode(), uid)

    def link(self, name, target, uid=0):
        self.add(name, stat.S_IFLNK, 0o777, str(target).encode(), uid)

    def copy(self, name, path, mode=0o755, uid=0):
        self.file(name, pathlib.Path(path).read_bytes(), mode, uid)

    def tree(self, name, top, uid, home):
        """All that is beneath `top`. Links that lead into (home[0]) lead into home[1]."""
        self.directory(name, 0o755, uid)
        for folder, folders, files in os.walk(top):
            for entry in sorted(folders + files):
                path = pathlib.Path(folder, entry)
                inner, mode = f"{name}/{path.relative_to(top)}", path.lstat().st_mode
                if stat.S_ISLNK(mode):
                    self.link(inner, os.readlink(path).replace(str(home[0]), str(home[1]), 1), uid)
                elif stat.S_ISDIR(mode):
                    self.directory(inner, stat.S_IMODE(mode), uid)
                else:
                    self.copy(inner, path, stat.S_IMODE(mode), uid)

    def write(self, path):
        with open(path, "wb") as out:
            for number, (name, mode, data, uid) in enumerate([*self.entries, ("TRAILER!!!", 0, b"", 0)], 1):
                fields = [number, mode, uid, uid, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
                head = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
                out.write(head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4))
