"""The programs of tests/unit for Windows: which run under wine, less which of their cases, and why the others do not.

Every name in tests/unit/meson.build is in UNITS, or in one row of NOT_RUN, or links a source that is not built for
Windows."""

UNITS = """
address approvals arena audit-read capability capability-json capability-laws capture card complaint config
config-narrow config-same config-store config-trust cover deliver-proxy dns dns-answer driver egress-ask egress-plan
egress-row env error etc files-change files-edit files-ignore files-pattern files-place files-read files-search find
git-config git-file git-identity git-index git-look git-progress git-settings git-tree git-user glob host host-cache
host-tools hosts http-chunk http-request http-response id json judged ledger ledger-refused limits manifest names
names-cache options planted planted-ground planted-unlock registries registry registry-damage remove report ring rpc
rules search-path secrets-filter secrets-own secrets-scan secrets-screen sha256 shown socks step-audit step-capability
step-cwd step-profile step-run step-session text toml toolchain toolchain-hostile ulimit url utc utf8 vcs-config
verify visible walk windows-path wsl-text
""".split()

# Cases that are not run, by what they ask for that Windows or wine has not.
WITHOUT = {
    "there is no fork()": {
        "approvals": "test_dead_askers test_damaged_questions test_a_race_of_answers",
        "audit-read": "reading_while_writing",
        "capture": "memory_that_ends_early",
        "config-store": "processes_tell_once",
        "files-change": "a_full_disk_leaves_the_old_content",
        "id": "where_random_bytes_are_refused",
        "judged": "test_one_that_died",
        "ledger": "many_processes an_inherited_ledger killed_writers",
        "ledger-refused": "a_full_disk a_file_size_limit no_permission",
        "names": "test_open_without_openat2",
    },
    "an ordinary user makes no symbolic link": {
        "config-trust": "links_to_a_users_own_file_are_followed",
        "files-change": "a_link_inside_is_written_through_and_stays "
                        "a_link_takes_no_place_of_a_directory_with_protected_names",
        "manifest": "programs",
        "planted": "test_links_in_place test_links_in_a_repository",
        "remove": "links_and_other_kinds",
        "step-capability": "test_a_link_that_the_command_can_write_grants_nothing",
        "step-cwd": "test_a_link_does_not_lead_out_of_a_granted_root",
        "step-session": "test_a_workspace_that_became_a_link",
        "toolchain": "test_linked_home",
    },
    "wine has a directory that was renamed while it was open by its old name": {
        "approvals": "test_one_answer test_the_first_counts test_too_late test_settled_are_bounded",
        "files-change": "renaming a_directory_that_gets_another_name_before_the_file_is_there "
                        "what_comes_into_a_directory_while_it_is_renamed",
        "ledger-refused": "what_went_away",
    },
    "wine replaces a file that is open in two steps, and a reader finds neither between them": {
        "config-store": "threads_meet_changes",
    },
    "wine opens nothing that its owner may not read, not even to look at it": {
        "names": "test_closed_directory test_unusable_root",
        "planted-unlock": "test_locked",
        "remove": "modes",
    },
    "wine takes minutes for so many files, as it compares all names of a directory": {
        "names-cache": "test_racily_clean test_budget_and_turns test_moved_secret test_replaced test_corrupt_cache "
                       "test_what_a_complete_search_found_is_kept test_a_directory_read_in_part_forgets_nothing",
        "toolchain": "test_too_many",
    },
    "there is no directory of devices": {"files-place": "devices_have_no_content"},
    "it tries a lock ten thousand times": {"ledger-refused": "a_lock_that_is_held"},
    "it takes a gigabyte": {"files-search": "a_line_of_a_gigabyte"},
    "no path on Windows is that long": {"files-search": "deep_trees", "names": "test_depth_bomb"},
    "no file on Windows has such a name": {"toolchain-hostile": "test_hostile_links"},
    "there is no other file system that a test can write to": {"planted": "test_other_filesystem"},
    "there is no limit of a file's size": {"ring": "test_no_room"},
    "fsync() stands for fdatasync(), and is called for directories, too": {"ledger-refused": "to_the_disk"},
    "no table there tells how wide a character is": {"visible": "test_plain_is_visible_and_left_to_right"},
    "names that differ by case only are one on Windows: tests/platforms/program.py": {"env": "prefixes proxy"},
    "wine's inet_pton() takes spellings that Windows refuses": {"address": "spellings"},
    "there is no sh": {"wsl-text": "the_command_as_sh_reads_it the_scripts_are_sh"},
    "another text for a number that is no error's": {"error": "an_error_is_filled_in_one_line"},
}

# Programs that are not run, though what they test is built for Windows, or nothing of it is.
NOT_RUN = {
    "it is of symbolic links, which an ordinary user does not make": "beneath files-race",
    "its questions are in directories renamed while open, which wine has by the old name": "gate gate-meanwhile",
    "its processes are forked, and killed": "gate-death ledger-room registry-races verify-killed",
    "it is of seccomp": "ioctls seccomp seccomp-live seccomp-peer seccomp-table",
    "it is of inotify": "host-watch names-memory",
    "it is of modes": "host-public",
    "it is of the private root of a command": "home host-view",
    "jobs have a fifo, and are refused on Windows": "jobs",
    "its pipes do not block: there are none such": "sink",
    "its sockets pass descriptors": "egress egress-loopback",
    "it stands in for a call of Linux's": "proxy-socket resolve-system",
    "it has name servers of its own, whom the system's resolver does not ask": "resolve",
    "it is of signals": "thread",
    "it is of processes as /proc and sysctl() tell of them": "pid",
    "it starts cordon-proxy, with Linux's calls": "proxy proxy-http proxy-life proxy-limits proxy-names proxy-token",
    "it takes minutes in wine, which compares all names of a directory": "planted-many",
    "it runs the toolchains of the machine, and wine's has none": "toolchain-real",
}


def without(name):
    """{case: reason}"""
    return {case: reason for reason, rows in WITHOUT.items() for case in rows.get(name, "").split()}


def sort(unit, built):
    """({reason: names}, mistakes): `unit` is what each program links; `built` tells whether all of it is."""
    reasons = {reason: names.split() for reason, names in NOT_RUN.items()}
    listed = [*UNITS, *(name for names in reasons.values() for name in names)]
    elsewhere = [name for name, links in unit.items() if not built(links)]
    mistakes = [f"{name} is no unit test" for name in listed if name not in unit]
    mistakes += [f"{name} is listed twice" for name in sorted(set(listed)) if listed.count(name) > 1]
    mistakes += [f"{name} is listed, and links a source that is not built for Windows"
                 for name in listed if name in elsewhere]
    mistakes += [f"{name} is neither run on Windows nor listed with a reason"
                 for name in unit if name not in [*listed, *elsewhere]]
    mistakes += [f"{name} is not run, and cases of it are left out"
                 for rows in WITHOUT.values() for name in rows if name not in UNITS]
    return {"it links a source that is not built for Windows": elsewhere, **reasons}, mistakes
