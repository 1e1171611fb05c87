"""The table: every attempt to get out, what it asks for, which walls hold it, and what other drivers make of it.

A row is R(name, category, words, without, …). The words are an attempt of attempt*.c and its arguments, with places of
the world (walls_world.py) in braces. `without` names the walls to leave out (include/cordon-walls.def), and with those
out the attempt must be seen to succeed, or it proves nothing; LOCAL: by the driver that raises none, where a user
namespace alone would hold it; BARE: without cordon, where every driver holds it. `landlock` and `bwrap` are the other
drivers' columns: CONTAINED, escapes(why), or refused(class), where cordon must not start it at all. The namespaces
driver contains every row. `shown`: no attempt to get out, but what must not be taken away: every driver lets it be
read, walls or not. `only`: why the attempt can only be seen to succeed for one kind of caller ("root: …"), since the
host itself refuses others. `how`: a way of running other than all rows of a kind in one sandbox, see walls_lab.py.
`judge`: the host looks afterwards, whatever the attempt believes: (one of JUDGES, path). `needs`: a probe of
tests/support/probe."""
import collections
import pathlib
import subprocess

from walls_world import CONFIG

CONTAINED = "contained"
LOCAL, BARE = "the driver local", "no cordon"


def escapes(why, only=None):
    """`only`: "root" or "user", where the other kind of caller is safe."""
    return ("escapes", why, only)


def refused(error_class):
    return ("refused", error_class, None)


Found = collections.namedtuple("Found", "mode text")  # a file, as the host sees it
JUDGES = {  # whether it got out, by what was found at the path: Found, or None
    "there": lambda found: found is not None,
    "evil": lambda found: found is not None and "evil" in found.text,  # it would do what the attempt put there
    "changed": lambda found: found != Found(0o644, CONFIG),  # a configuration is not what it was, gone included
}

Row = collections.namedtuple("Row", "name category words without landlock bwrap options how judge only needs shown")
ROWS = []


def R(name, category, words, without, landlock=CONTAINED, bwrap=CONTAINED, options=(), how="batch", judge=None,
      only=None, needs=None, shown=False):
    assert not any(row.name == name for row in ROWS), name
    ROWS.append(Row(name, category, words, without, landlock, bwrap, tuple(options), how, judge, only, needs, shown))


FILES = "filesystem,filesystem_second,identity"
MOUNTING = "kernel_surface,privileges,filesystem_second"
ROOT = "root: the host refuses this to an ordinary user as well"

# ---- reading ---------------------------------------------------------------------------------------------------------
NO_MASK = escapes("Landlock cannot take away beneath what it gave: masked_names is none")
METADATA = escapes("Landlock judges contents, not metadata: filesystem says so")
ATTRIBUTES = escapes("Landlock judges contents, not metadata: filesystem says so; the filter refuses it to root",
                     "user")

R("read-outside", "read", ["read", "{out}/secret", "{text}"], FILES)
R("read-home-key", "read", ["read", "{home}/.ssh/id_ed25519", "{text}"], FILES)
R("read-home-history", "read", ["read", "{home}/.bash_history", "{text}"], FILES)
R("list-home", "read", ["list", "{home}", ".ssh"], FILES)
R("list-root", "read", ["list", "/", "srv"], FILES)
R("read-etc", "read", ["readable", "/etc/login.defs"], FILES)
R("read-shadow", "read", ["readable", "/etc/shadow"], FILES, only=ROOT)
R("read-sys", "read", ["list", "/sys", "kernel"], FILES)
R("read-var", "read", ["list", "/var", "log"], FILES)
R("read-symlink", "read", ["read", "{ws}/link-out", "{text}"], FILES)
R("read-symlink-directory", "read", ["read", "{ws}/link-dir/secret", "{text}"], FILES)
R("read-dotdot", "read", ["openat", "{ws}", "../outside/secret", "{text}"], FILES)
R("read-openat2", "read", ["openat2", "{ws}", "link-dir/secret", "{text}"], f"{FILES},kernel_surface")
R("read-hardlink", "read", ["link", "{out}/secret", "{ws}/hardlink", "{text}"], FILES)
R("read-proc-root", "read", ["read", "/proc/self/root{out}/secret", "{text}"], FILES)
R("read-proc-cwd", "read", ["read", "/proc/self/cwd/../outside/secret", "{text}"], FILES)
R("read-proc-thread-root", "read", ["read", "/proc/thread-self/root{out}/secret", "{text}"], FILES)
R("read-reopen", "read", ["reopen", "{out}/secret", "{text}"], FILES)
R("read-other-session", "read", ["read", "{other_session}/secret", "{text}"], FILES)
R("read-ledger", "read", ["list", "{data}/cordon", "ledger"], FILES)
R("read-data-in-grant", "read", ["list", "{data}/cordon", "ledger"], FILES, options=["--read", "{around}"],
  landlock=refused("spawn_sandbox_unavailable"))
R("see-outside", "read", ["stat", "{out}/secret"], FILES, landlock=METADATA)
R("enter-outside", "read", ["chdir", "{out}"], FILES, landlock=METADATA)
R("watch-outside", "read", ["watch", "{out}"], FILES, landlock=METADATA)
R("execute-outside", "read", ["execute", "{out}/tool", "hello"], FILES)

# ---- masked names ----------------------------------------------------------------------------------------------------
MASKS = "masked_names"
R("masked-env", "masked", ["read", "{ws}/.env", "{text}"], MASKS, NO_MASK)
R("masked-env-suffix", "masked", ["read", "{ws}/conf/.env.local", "{text}"], MASKS, NO_MASK)
R("masked-pem", "masked", ["read", "{ws}/keys/server.pem", "{text}"], MASKS, NO_MASK)
R("masked-key-suffix", "masked", ["read", "{ws}/keys/tls.key", "{text}"], MASKS, NO_MASK)
R("masked-example-link", "masked", ["read", "{ws}/.env.example", "{text}"], MASKS, NO_MASK)
R("masked-ssh", "masked", ["read", "{ws}/.ssh/config", "{text}"], MASKS, NO_MASK)
R("masked-ssh-list", "masked", ["list", "{ws}/.ssh", "config"], MASKS, NO_MASK)
R("masked-key", "masked", ["read", "{ws}/keys/id_rsa_work", "{text}"], MASKS, NO_MASK)
R("masked-netrc", "masked", ["read", "{ws}/.netrc", "{text}"], MASKS, NO_MASK)
R("masked-symlink", "masked", ["read", "{ws}/link-env", "{text}"], MASKS, NO_MASK)
R("masked-proc-root", "masked", ["read", "/proc/self/root{ws}/.env", "{text}"], MASKS, NO_MASK)
R("masked-reopen", "masked", ["reopen", "{ws}/.env", "{text}"], MASKS, NO_MASK)
R("masked-hardlink", "masked", ["link", "{ws}/.env", "{ws}/env-copy", "{text}"], MASKS, NO_MASK)
R("masked-rename", "masked", ["rename", "{ws}/conf2/.env", "{ws}/conf2/plain"], MASKS, NO_MASK)
R("masked-rename-away", "masked", ["rename", "{ws}/conf8/.env", "{ws}/keys/plain"], "masked_names,protected_names",
  NO_MASK)
R("masked-rename-parent", "masked", ["rename-parent", "{ws}/conf3", "{ws}/conf4", ".env", "{text}"], MASKS, NO_MASK)
R("masked-exchange", "masked", ["exchange", "{ws}/conf5/.env", "{ws}/conf5/other"], MASKS, NO_MASK)
R("masked-unlink", "masked", ["unlink", "{ws}/conf6/.env"], MASKS, NO_MASK)
R("masked-write", "masked", ["append", "{ws}/conf7/.env"], MASKS, NO_MASK)
R("masked-in-grant", "masked", ["read", "{granted}/deep/.env", "{text}"], MASKS, NO_MASK,
  options=["--read", "{granted}"])
R("masked-host-view", "masked", ["read", "{far_secret}", "{text}"], "masked_names,identity",
  refused("spawn_sandbox_unavailable"), options=["--view", "host-readonly"], how="far")
R("masked-unmount", "masked", ["unmask", "{ws}/.env", "{text}"], MOUNTING)

# What looks like these and holds no secret, or one that every clone has anyway.
R("shown-example", "shown", ["read", "{ws}/shown/.env.example", "{text}"], MASKS, shown=True)
R("shown-template", "shown", ["read", "{ws}/shown/.env.template", "{text}"], MASKS, shown=True)
R("shown-certificate", "shown", ["read", "{ws}/shown/ca.pem", "{text}"], MASKS, shown=True)
R("shown-committed-key", "shown", ["read", "{ws}/shown/committed.key", "{text}"], MASKS, shown=True)
R("shown-committed-env", "shown", ["read", "{ws}/shown/.env.test", "{text}"], MASKS, shown=True)
R("masked-changed-key", "masked", ["read", "{ws}/shown/changed.key", "{text}"], MASKS, NO_MASK)

# ---- writing ---------------------------------------------------------------------------------------------------------
R("write-outside", "write", ["append", "{out}/file"], FILES)
R("write-home-rc", "write", ["append", "{home}/.bashrc"], FILES)
R("write-cache", "write", ["create", "{home}/.npm/_cacache/planted"], FILES,
  judge=("there", "{home}/.npm/_cacache/planted"))
R("write-read-grant", "write", ["append", "{granted}/file"], FILES, options=["--read", "{granted}"])
R("create-read-grant", "write", ["create", "{granted}/made"], FILES, options=["--read", "{granted}"])
R("write-fifo-read-grant", "write", ["open-write", "{granted}/fifo"], "masked_names,filesystem_second",
  options=["--read", "{granted}"])
R("write-etc", "write", ["open-write", "/etc/hosts"], FILES, only=ROOT)
R("write-usr", "write", ["open-write", "/usr/share/base-files/info.dir"], FILES, only=ROOT)
R("create-root", "write", ["create", "/cordon-walls-made"], FILES, only=ROOT)
R("create-outside", "write", ["create", "{out}/made"], FILES)
R("create-symlink", "write", ["create", "{ws}/link-dir/made-by-link"], FILES)
R("write-symlink", "write", ["append", "{ws}/link-file"], FILES)
R("write-new-symlink", "write", ["symlink-append", "{out}/file", "{ws}/link-new"], FILES)
R("write-hardlink", "write", ["link-append", "{out}/file", "{ws}/hardlink-file"], FILES)
R("mkdir-outside", "write", ["mkdir", "{out}/directory"], FILES)
R("unlink-outside", "write", ["unlink", "{out}/doomed"], FILES)
R("truncate-outside", "write", ["truncate", "{out}/long"], FILES)
R("rename-out", "write", ["rename", "{ws}/notes", "{out}/moved-out"], FILES)
R("rename-in", "write", ["rename", "{out}/movable", "{ws}/moved-in"], FILES)
R("tmpfile-out", "write", ["tmpfile", "{ws}", "{out}/tmpfile"], FILES)
R("fifo-outside", "write", ["fifo", "{out}/fifo"], FILES)
R("bind-socket-outside", "write", ["bind-socket", "{out}/made.sock"], FILES)
R("chmod-outside", "write", ["chmod", "{out}/file"], FILES, landlock=ATTRIBUTES)
R("utime-outside", "write", ["utime", "{out}/file"], FILES, landlock=ATTRIBUTES)
R("setxattr-outside", "write", ["setxattr", "{out}/file"], FILES, landlock=ATTRIBUTES, needs="user-xattr")
R("write-host-view", "write", ["append", "{far}/file"], FILES, options=["--view", "host-readonly"], how="far",
  landlock=refused("spawn_sandbox_unavailable"))
R("write-ledger", "write", ["open-write", "{ledger}"], FILES)
R("write-data-in-grant", "write", ["create", "{data}/cordon/planted"], FILES, options=["--write", "{around}"],
  judge=("there", "{data}/cordon/planted"), landlock=refused("spawn_sandbox_unavailable"),
  bwrap=refused("spawn_sandbox_unavailable"))
R("tmp-of-others", "write", ["create", "/tmp/cordon-walls-{unique}"], FILES,
  judge=("there", "/tmp/cordon-walls-{unique}"))
R("tmp-next-command", "write", ["stat", "/tmp/cordon-walls-next-{unique}"], FILES, how="next")

# ---- protected names: what is on disk afterwards counts --------------------------------------------------------------
NAMES = "protected_names"
CHANGED = escapes("where no mount keeps it, a file can be changed while the command runs; the check at the end moves away only what "
                  "would run")
EVIL = "[core]\n\tfsmonitor = evil\n"


R("protect-hook", "protected", ["plant", "{ws}/r1/.git/hooks/pre-commit"], NAMES,
  judge=("evil", "{ws}/r1/.git/hooks/pre-commit"))
R("protect-new-hook", "protected", ["plant", "{ws}/r2/.git/hooks/post-merge"], NAMES,
  judge=("evil", "{ws}/r2/.git/hooks/post-merge"))
R("protect-config", "protected", ["append", "{ws}/r3/.git/config", EVIL], NAMES, judge=("evil", "{ws}/r3/.git/config"))
R("protect-config-rename", "protected", ["rename", "{ws}/r4/evil", "{ws}/r4/.git/config"], NAMES,
  judge=("evil", "{ws}/r4/.git/config"))
R("protect-config-exchange", "protected", ["exchange", "{ws}/r5/evil", "{ws}/r5/.git/config"], NAMES,
  judge=("evil", "{ws}/r5/.git/config"))
R("protect-config-unlink", "protected", ["unlink", "{ws}/r6/.git/config"], NAMES, CHANGED, CHANGED,
  judge=("changed", "{ws}/r6/.git/config"))
R("protect-hooks-rename", "protected", ["rename-plant", "{ws}/r7/.git/hooks", "{ws}/r7/.git/old", "pre-commit"], NAMES,
  judge=("evil", "{ws}/r7/.git/hooks/pre-commit"))
R("protect-git-rename", "protected", ["rename-plant", "{ws}/r8/.git", "{ws}/r8/old", "hooks/pre-commit"], NAMES,
  judge=("evil", "{ws}/r8/.git/hooks/pre-commit"))
R("protect-repository-rename", "protected", ["rename-plant", "{ws}/r9", "{ws}/r9-old", ".git/hooks/pre-commit"], NAMES,
  judge=("evil", "{ws}/r9/.git/hooks/pre-commit"))
R("protect-config-link", "protected", ["link-append", "{ws}/r10/.git/config", "{ws}/r10/name", EVIL], NAMES,
  judge=("evil", "{ws}/r10/.git/config"))
R("protect-config-chmod", "protected", ["chmod", "{ws}/r11/.git/config"], NAMES, (*CHANGED[:2], "user"), CHANGED,
  judge=("changed", "{ws}/r11/.git/config"))
R("protect-config-truncate", "protected", ["truncate", "{ws}/r12/.git/config"], NAMES, CHANGED, CHANGED,
  judge=("changed", "{ws}/r12/.git/config"))
R("protect-policy", "protected", ["append", "{ws}/.cordon.toml", "evil = 1\n"], NAMES, CHANGED, CHANGED,
  judge=("evil", "{ws}/.cordon.toml"))
R("protect-planted-hook", "protected", ["plant", "{ws}/new/.git/hooks/post-checkout"], NAMES,
  judge=("evil", "{ws}/new/.git/hooks/post-checkout"))
R("protect-planted-deep-hook", "protected", ["plant", "{ws}/a/b/c/new/.git/hooks/pre-push"], NAMES,
  judge=("evil", "{ws}/a/b/c/new/.git/hooks/pre-push"))
R("protect-planted-config", "protected", ["plant", "{ws}/new2/.git/config", EVIL], NAMES,
  judge=("evil", "{ws}/new2/.git/config"))

# ---- unix sockets ----------------------------------------------------------------------------------------------------
R("socket-workspace", "ipc", ["unix", "{ws}/socket", "{text}"], "unix_sockets")
R("socket-in-grant", "ipc", ["unix", "{granted}/socket", "{text}"], "unix_sockets", options=["--read", "{granted}"])
R("socket-outside", "ipc", ["unix", "{out}/socket", "{text}"], FILES)
R("socket-datagram-pair", "ipc", ["unix-datagram", "{granted}/datagram"], "unix_sockets",
  options=["--read", "{granted}"])
R("socket-abstract", "ipc", ["abstract", "{abstract}", "{text}"], "network,filesystem_second")

# ---- other IPC -------------------------------------------------------------------------------------------------------
R("ipc-shared-memory", "ipc", ["shm", "{key}", "{text}"], "ipc")
R("ipc-semaphore", "ipc", ["sem", "{key}"], "ipc")
R("ipc-message-queue", "ipc", ["msg", "{key}"], "ipc")
R("ipc-posix-queue", "ipc", ["mq", "{mq}"], "ipc,filesystem_second")
R("ipc-dev-shm", "ipc", ["read", "/dev/shm/{shm_file}", "{text}"], "devices,filesystem_second,identity")

# ---- the environment -------------------------------------------------------------------------------------------------
R("env-variable", "environment", ["variable", "CALLER_WORD", "{text}"], BARE)
R("env-agent", "environment", ["variable", "SSH_AUTH_SOCK", "{text}"], BARE)
R("env-preload", "environment", ["variable", "LD_PRELOAD", "{text}"], BARE)
R("env-bash", "environment", ["variable", "BASH_ENV", "{text}"], BARE)
R("env-python", "environment", ["variable", "PYTHONPATH", "{text}"], BARE)
# HOME is the path of the caller's own home; what is there is not.
R("env-home", "environment", ["list", "{home}", ".bash_history"], FILES)
R("env-of-cordon", "environment", ["environments", "{text}"], LOCAL)

# ---- processes -------------------------------------------------------------------------------------------------------
LISTED = escapes("without a process namespace others are listed: proc is none")
R("process-see", "processes", ["see", "{victim}"], "proc", LISTED)
R("process-cmdline", "processes", ["read", "/proc/{victim}/cmdline", "victim"], "proc", LISTED)
R("process-environ", "processes", ["read", "/proc/{victim}/environ", "{text}"], LOCAL)
R("process-maps", "processes", ["read", "/proc/{victim}/maps", "attempt"], LOCAL)
R("process-memory", "processes", ["memory", "{victim}", "{address}", "{text}"], LOCAL)
R("process-vm-read", "processes", ["vm-read", "{victim}", "{address}", "{text}"], LOCAL)
R("process-fd", "processes", ["read", "/proc/{victim}/fd/{victim_fd}", "{text}"], LOCAL)
R("process-take-fd", "processes", ["take-fd", "{victim}", "{victim_fd}", "{text}"], LOCAL)
R("process-root", "processes", ["read", "/proc/{victim}/root{out}/secret", "{text}"], LOCAL)
R("process-cwd", "processes", ["read", "/proc/{victim}/cwd/secret", "{text}"], LOCAL)
R("process-signal", "processes", ["signal", "{victim}"], "processes,proc,filesystem_second,identity")
R("process-pidfd-signal", "processes", ["pidfd-signal", "{victim}"], "processes,proc,filesystem_second,identity")
R("process-trace", "processes", ["trace", "{victim}"], LOCAL)
R("process-renice", "processes", ["renice", "{victim}"], LOCAL)
R("process-limits", "processes", ["limits-of", "{victim}"], LOCAL)
R("process-namespace", "processes", ["namespace", "pid", "{ns_pid}"], "processes,proc",
  escapes("there is no process namespace"))

# cordon's own init, the parent of the command
INIT = "lifetime,filesystem_second"
ITS_INIT = escapes("pid 1 is bubblewrap's own, which has the same namespaces and filter and holds nothing else")
R("init-trace", "processes", ["init-trace"], INIT, bwrap=ITS_INIT)
R("init-environ", "processes", ["init-open", "environ"], INIT, bwrap=ITS_INIT)
R("init-memory", "processes", ["init-open", "mem"], INIT, bwrap=ITS_INIT)
R("init-maps", "processes", ["init-open", "maps"], INIT, bwrap=ITS_INIT)
R("init-descriptors", "processes", ["init-link", "fd/3"], INIT)
R("init-stat", "processes", ["init-open", "stat"], INIT, LISTED, ITS_INIT)
for kind in ["policy", "processors", "priority"]:
    R(f"init-{kind}", "processes", ["init-schedule", kind], "processes,proc")
R("init-kill", "processes", ["init-kill", "{ws}/init-is-gone"], LOCAL, how="init-kill")

# ---- privileges ------------------------------------------------------------------------------------------------------
R("capabilities", "privileges", ["capabilities"], "privileges")
R("bounding-set", "privileges", ["bounding-set"], "privileges",
  escapes("only privilege could empty it; no_new_privs keeps anything in it from being gained", "user"))
R("new-privileges", "privileges", ["new-privileges"], "privileges")
R("become-root", "privileges", ["root"], LOCAL, escapes("a root caller's command stays root, without its privileges: "
  "identity is none", "root"), only=ROOT)
R("setuid-program", "privileges", ["setuid", "{setuid}", "{setuid_argument}"], LOCAL)
R("file-capabilities", "privileges", ["file-capabilities", "{capable}"], LOCAL,
  only="root: only root can give a file capabilities")
R("chown", "privileges", ["chown", "{ws}/notes"], LOCAL, only=ROOT)
R("unshare-user", "privileges", ["unshare", "user"], "kernel_surface")
R("unshare-mount", "privileges", ["unshare", "mnt"], "kernel_surface,privileges")
R("unshare-network", "privileges", ["unshare", "net"], "kernel_surface,privileges")
R("clone-user", "privileges", ["clone-namespace", "user"], "kernel_surface")
R("clone-pid", "privileges", ["clone-namespace", "pid"], "kernel_surface,privileges")
R("clone3-user", "privileges", ["clone3-namespace"], "kernel_surface")
R("setns", "privileges", ["setns", "net"], "kernel_surface,privileges")
R("mount-tmpfs", "privileges", ["mount", "{ws}/point"], MOUNTING)
R("mount-bind", "privileges", ["bind-mount", "/usr", "{ws}/point"], MOUNTING)
R("mount-remount", "privileges", ["remount", "/tmp"], MOUNTING)
R("mount-new-api", "privileges", ["new-mount", "tmpfs"], MOUNTING)
R("chroot", "privileges", ["chroot", "{ws}"], "kernel_surface,privileges")
R("pivot-root", "privileges", ["pivot-root", "{ws}/point2"], MOUNTING)
R("mknod", "privileges", ["mknod", "{ws}/null"], LOCAL, only=ROOT)
for way in ("chmod", "fchmodat2", "create", "tmpfile", "mknod", "setgid"):
    R(f"make-setuid-{way}", "privileges", ["make-setuid", way, "{ws}/setuid-" + way], "kernel_surface")
R("make-setuid-openat2", "privileges", ["make-setuid", "openat2", "{ws}/setuid-openat2"], "kernel_surface")
R("identity-files", "privileges", ["readable", "{out}/root-only"], FILES, only=ROOT)

# ---- the kernel's surface --------------------------------------------------------------------------------------------
SURFACE = "kernel_surface"
for call in ("bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "keyctl", "add_key", "request_key",
             "process_vm_readv", "process_vm_writev", "open_by_handle_at", "fanotify_init", "pidfd_getfd",
             "process_madvise", "kcmp", "setns", "open_tree", "quotactl", "clock_settime", "memfd_secret",
             "move_pages"):
    R(f"call-{call}", "kernel", ["call", call], SURFACE)
R("call-modify_ldt", "kernel", ["call", "modify_ldt"], SURFACE, needs="x86_64")
for call, probe in {"kexec_load": "kexec", "init_module": "modules", "finit_module": "modules",
                    "delete_module": "modules", "reboot": None, "syslog": None, "swapoff": "swap"}.items():
    R(f"call-{call}", "kernel", ["call", call], LOCAL, only=ROOT, needs=probe)
R("entry-32-bit", "kernel", ["int80"], SURFACE, needs="ia32")
R("entry-x32", "kernel", ["x32"], SURFACE, needs="x32")
R("personality", "kernel", ["personality"], SURFACE)
R("line-discipline", "kernel", ["line-discipline"], SURFACE)
R("quota-project", "kernel", ["quota-project", "{ws}/file"], SURFACE)
R("file-flags", "kernel", ["file-flags", "{ws}/file"], SURFACE)
for request, number in {"type": 0x5412, "paste": 0x541c, "console": 0x541d, "snapshot": 0x50009417,
                        "snapshot-upper": 0x150009417, "subvolume": 0x50009418, "add-key": 0xc0506617,
                        "remove-key": 0xc0406618, "encrypt": 0x800c6613, "verity": 0x40806685,
                        "move-extents": 0xc028660f, "namespace": 0xb701, "interface": 0x8914}.items():
    R(f"request-{request}", "kernel", ["request", hex(number)], SURFACE)
R("family-packet", "kernel", ["socket", "17", "3", "768"], "kernel_surface,privileges")
R("family-inet-packet", "kernel", ["socket", "2", "10", "768"], "kernel_surface,privileges")
R("family-vsock", "kernel", ["socket", "40", "1", "0"], SURFACE, needs="vsock")
R("family-alg", "kernel", ["socket", "38", "5", "0"], SURFACE, needs="alg")
R("netlink-uevent", "kernel", ["socket", "16", "3", "15"], SURFACE)
R("netlink-diag", "kernel", ["socket", "16", "3", "4"], SURFACE)
R("family-raw", "kernel", ["socket", "2", "3", "1"], "kernel_surface,privileges")
R("family-raw6", "kernel", ["socket", "10", "3", "58"], "kernel_surface,privileges")
R("proc-sys-network", "kernel", ["write-setting", "/proc/sys/net/ipv4/ip_forward"], "proc,privileges")
R("proc-sys-kernel", "kernel", ["write-setting", "/proc/sys/vm/overcommit_memory"], "proc,identity", only=ROOT)
R("proc-sysrq", "kernel", ["open-write", "/proc/sysrq-trigger"], "proc,identity", only=ROOT, needs="sysrq")
R("lease", "kernel", ["lease", "{ws}/leased"], "kernel_surface")
R("proc-kcore", "kernel", ["readable", "/proc/kcore"], LOCAL, only=ROOT, needs="kcore")
R("proc-timer-list", "kernel", ["read", "/proc/timer_list", "Timer"], "proc,identity", escapes("proc is none", "root"),
  only=ROOT)
R("proc-pagetypeinfo", "kernel", ["read", "/proc/pagetypeinfo", "Page block"], "proc,identity",
  escapes("proc is none", "root"), only=ROOT)
R("proc-keys", "kernel", ["read", "/proc/keys", "cordon-walls"], "proc,keyring,identity",
  escapes("proc is none; only names of keys show"), how="key")
R("proc-net", "kernel", ["read", "/proc/net/unix", "{abstract}"], "network", escapes("proc is none"))
R("proc-sysvipc", "kernel", ["read", "/proc/sysvipc/shm", "{key}"], "ipc", escapes("proc is none"))
R("keyring", "kernel", ["key", "cordon-walls", "{text}"], "keyring,kernel_surface", how="key")

# ---- the network -----------------------------------------------------------------------------------------------------
R("tcp-host", "network", ["tcp", "127.0.0.1", "{tcp}", "{text}"], "network")
R("tcp-host-v6", "network", ["tcp", "::1", "{tcp6}", "{text}"], "network", needs="ipv6")
R("tcp-host-address", "network", ["tcp", "127.1.2.3", "{tcp}", "{text}"], "network")
R("udp-host", "network", ["udp", "127.0.0.1", "{udp}", "{text}"], "network")
R("port-of-host", "network", ["port-taken", "{tcp}"], "network")
R("interfaces", "network", ["interfaces"], "network", needs="interface")
R("routes", "network", ["netlink-routes"], "network", needs="interface")
R("network-namespace", "network", ["namespace", "net", "{ns_net}"], "network",
  escapes("the namespace is the host's; no "
  "socket of it can be made"))

R("netlink-address", "network", ["netlink-change", "address"], "privileges")
R("netlink-route", "network", ["netlink-change", "route"], "privileges")

# With listed hosts there is a way out, and it is no other: what is refused without a network is refused all the same.
LISTED_HOSTS = ["--net", "listed.example:443", "--net", "*.listed.example:8443"]
for name, words, without, needs in [
        ("tcp", ["tcp", "127.0.0.1", "{tcp}", "{text}"], "network", None),
        ("tcp-v6", ["tcp", "::1", "{tcp6}", "{text}"], "network", "ipv6"),
        ("tcp-address", ["tcp", "127.1.2.3", "{tcp}", "{text}"], "network", None),
        ("udp", ["udp", "127.0.0.1", "{udp}", "{text}"], "network", None),
        ("port", ["port-taken", "{tcp}"], "network", None),
        ("interfaces", ["interfaces"], "network", "interface"),
        ("routes", ["netlink-routes"], "network", "interface"),
        ("namespace", ["namespace", "net", "{ns_net}"], "network", None),
        ("abstract", ["abstract", "{abstract}", "{text}"], "network,filesystem_second", None),
        ("raw", ["socket", "2", "3", "1"], "kernel_surface,privileges", None),
        ("raw6", ["socket", "10", "3", "58"], "kernel_surface,privileges", None),
        ("packet", ["socket", "17", "3", "768"], "kernel_surface,privileges", None),
        ("vsock", ["socket", "40", "1", "0"], SURFACE, "vsock"),
        ("diag", ["socket", "16", "3", "4"], SURFACE, None),
        ("address", ["netlink-change", "address"], "privileges", None),
        ("route", ["netlink-change", "route"], "privileges", None),
        ("unshare", ["unshare", "net"], "kernel_surface,privileges", None),
        ("setns", ["setns", "net"], "kernel_surface,privileges", None),
        ("setting", ["write-setting", "/proc/sys/net/ipv4/ip_forward"], "proc,privileges", None)]:
    R(f"hosts-{name}", "network", words, without, refused("spawn_sandbox_unavailable"), options=LISTED_HOSTS,
      needs=needs)

# A service of the host that was granted is one port of its loopback, and no other.
for name, words, needs in [
        ("tcp", ["tcp", "127.0.0.1", "{tcp}", "{text}"], None),
        ("tcp-v6", ["tcp", "::1", "{tcp6}", "{text}"], "ipv6"),
        ("tcp-address", ["tcp", "127.1.2.3", "{tcp}", "{text}"], None),
        ("udp", ["udp", "127.0.0.1", "{udp}", "{text}"], None)]:
    R(f"service-{name}", "network", words, "network", refused("spawn_sandbox_unavailable"),
      options=["--net", "localhost:1", "--net", "[::1]:2"], needs=needs)

# ---- the terminal ----------------------------------------------------------------------------------------------------
R("terminal-type", "terminal", ["terminal-type", "typed-{unique}"], "terminal,kernel_surface", how="terminal",
  needs="tiocsti")
R("terminal-open", "terminal", ["terminal-open"], "terminal", how="terminal")
R("terminal-write", "terminal", ["terminal-write", "written-{unique}"], "terminal", how="terminal")

# ---- descriptors -----------------------------------------------------------------------------------------------------
R("descriptors", "descriptors", ["descriptors", "{text}"], "descriptors", how="descriptors")
R("stdin-file", "descriptors", ["stdio", "0"], BARE, how="stdio")
R("stdout-file", "descriptors", ["stdio", "1"], BARE, how="stdio")
R("stderr-file", "descriptors", ["stdio", "2"], BARE, how="stdio")

# ---- what is left when it is over ------------------------------------------------------------------------------------
STAY = "lifetime,processes,proc"
for kind in ("child", "session", "daemon", "deaf", "stopped", "pipes"):
    R(f"leave-{kind}", "leftovers", ["leave", "{mark}", kind], STAY, how="leave")
    R(f"leave-{kind}-timeout", "leftovers", ["leave", "{mark}", kind], STAY, how="leave-timeout")
R("leave-after-kill", "leftovers", ["pause", "{mark}"], STAY, how="kill-cordon")

# ---- spawning and programs -------------------------------------------------------------------------------------------
NO_SPAWN = ["--no-spawn"]
R("spawn-fork", "spawn", ["fork"], "spawn", options=NO_SPAWN, how="inline")
R("spawn-vfork", "spawn", ["vfork"], "spawn", options=NO_SPAWN, how="inline")
R("spawn-clone", "spawn", ["clone"], "spawn", options=NO_SPAWN, how="inline")
R("spawn-clone3", "spawn", ["clone3"], "spawn,kernel_surface", options=NO_SPAWN, how="inline")
R("spawn-posix-spawn", "spawn", ["posix-spawn", "{self}"], "spawn", options=NO_SPAWN, how="inline")

LISTED_PROGRAMS = ["--program", "{self}", "--program", "/bin/sh"]
LOADER = escapes("Landlock does not judge what a loader maps: programs says so")
NO_LIST = refused("spawn_sandbox_unavailable")


def program(name, words, landlock=CONTAINED, options=()):
    R(f"program-{name}", "programs", words, "programs", landlock, NO_LIST, options=[*LISTED_PROGRAMS, *options])


program("other", ["execute", "/usr/bin/true"])
program("workspace", ["copy-execute", "{self}", "{ws}/copy", "hello"])
program("tmp", ["copy-execute", "{self}", "/tmp/copy", "hello"])
program("shm", ["copy-execute", "{self}", "/dev/shm/copy-{unique}", "hello"])
program("memfd", ["memfd-execute", "{self}"])
program("loader", ["execute", "{loader}", "/usr/bin/true"], LOADER)
program("loader-copy", ["copy-execute", "{loader}", "{ws}/loader", "/usr/bin/true"])
program("fd", ["fd-execute", "/usr/bin/true"])
program("script", ["script", "{ws}/script", "/usr/bin/env sh"])
program("symlink", ["symlink-execute", "/usr/bin/true", "{ws}/true"])
program("link-name", ["symlink-execute", "/usr/bin/true", "{ws}/sh"])
program("map", ["map-execute", "/usr/bin/true"], LOADER)
program("map-tmp", ["copy-map", "/usr/bin/true", "/tmp/true"])
program("map-cover", ["copy-map", "/usr/bin/true", "{data}/cordon/true"], refused("spawn_sandbox_unavailable"),
        ["--write", "{around}"])
program("map-workspace", ["map-execute", "{ws}/tool"], LOADER)

# ---- the rest --------------------------------------------------------------------------------------------------------
R("device", "devices", ["readable", "{device}"], "devices,identity")
R("device-list", "devices", ["stat", "{device}"], "devices", landlock=METADATA)
R("device-terminals", "devices", ["list", "/dev", "{device_name}"], "devices")
R("cgroup-namespace", "names", ["namespace", "cgroup", "{ns_cgroup}"], "cgroup_view", escapes("cgroup_view is none"))
R("cgroup-tree", "names", ["list", "/sys/fs", "cgroup"], FILES)
R("hostname", "names", ["hostname", "{hostname}"], "hostname", escapes("hostname is none"))
# Without a control group there is nothing that counts a command's processes where it has no user namespace of its own.
GROUPED = subprocess.run([pathlib.Path(__file__).resolve().parents[1] / "support/probe", "cgroup"],
                         capture_output=True).returncode == 0
UNCOUNTED = CONTAINED if GROUPED else escapes("counted per user, not per command: limit_processes is none")
R("limit-processes", "limits", ["fork-many", "200"], "limit_processes", UNCOUNTED, UNCOUNTED,
  options=["--processes", "64"])
R("limit-memory", "limits", ["use-memory", "134217728", "{ws}/used"], "limit_memory", options=["--memory", "64M"],
  judge=("there", "{ws}/used"), how="alone")
R("limit-open-files", "limits", ["open-many", "1100"], "limit_files")
R("limit-disk", "limits", ["fill", "{ws}/large", "40", "{ws}/filled"], "limit_disk", options=["--disk", "4M"],
  judge=("there", "{ws}/filled"), how="alone")
R("limit-core", "limits", ["core"], "limit_files")
R("limit-core-piped", "limits", ["core-piped"], "kernel_surface")
R("limit-time", "limits", ["outlast", "1.5", "{ws}/outlasted"], "limit_time", options=["--timeout", "400ms"],
  judge=("there", "{ws}/outlasted"), how="alone")
R("limit-output", "limits", [], "limit_output", options=["--max-output", "1000"], how="output")

# ---- sessions --------------------------------------------------------------------------------------------------------

# Without one of the first three each command has a sandbox of its own. The others are the supervisor's to hold,
# whatever the command runs in.
SAME_IN_SESSIONS = {"filesystem", "processes", "descriptors", "limit_time", "limit_disk", "limit_output"}


def is_of_sessions(row):
    """Is there something to see, where a session's commands lack these?"""
    return row.without not in (LOCAL, BARE) and not SAME_IN_SESSIONS & set(row.without.split(","))
