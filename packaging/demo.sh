#!/bin/sh
# What `make run` shows: a command at work in a sandbox, then what it could not do there. Each attempt is first made
# without cordon, to show that this machine would let it through. Status 0 only if everything went as it should.
set -u
cordon=$(realpath "${CORDON:-build/cordon}")
demo=$(mktemp -d "${TMPDIR:-/tmp}/cordon-demo-XXXXXX")
trap 'kill $running 2>/dev/null; rm -rf "$demo"' EXIT
trap 'exit 130' INT TERM
running=
wrong=0
export XDG_DATA_HOME="$demo/data"
mkdir -p "$demo/project" "$demo/home/.ssh" "$demo/data"
echo 'not a real key' > "$demo/home/.ssh/id_ed25519"
cd "$demo/project" || exit 1

bold='' green='' red='' plain=''
if [ -t 1 ]; then
	bold=$(printf '\033[1m') green=$(printf '\033[32m') red=$(printf '\033[31m') plain=$(printf '\033[0m')
fi

works() { # COMMAND
	printf '  $ cordon run -- sh -c '\''%s'\''\n' "$1"
	"$cordon" run -- sh -c "$1" > "$demo/out" 2>&1 || {
		wrong=1
		echo "${red}that should have worked$plain" >> "$demo/out"
	}
	sed 's/^/    /' "$demo/out"
}

contained() { # WHAT COMMAND: works outside, must fail inside
	if ! sh -c "$2" > /dev/null 2>&1; then
		printf '  %-10s %s\n' 'not tried' "$1: this machine refuses it by itself"
		return
	fi
	"$cordon" run -- sh -c "$2" > "$demo/out" 2>&1
	case $? in
	0) verdict="$red" word=ESCAPED wrong=1 ;;
	125) verdict="$red" word='not run' wrong=1 ;;
	*) verdict="$green" word=contained ;;
	esac
	printf '  %s%-10s%s %s: %s\n' "$verdict" "$word" "$plain" "$1" \
		"$(grep . "$demo/out" | tail -n 1 | sed 's/^sh: [0-9]*: //' | cut -c 1-90)"
}

echo "${bold}A command at work in its workspace$plain ($demo/project)"
works 'echo "hello from $(id -un)" > note && cat note && python3 -c "print(sum(range(10)))" && ls -A'

echo
echo "${bold}The same, when it wants more$plain (each of these works on this machine without cordon)"
sleep 60 &
other=$! running="$running $!"
/usr/bin/python3 -c 'import socket, time
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); print(s.getsockname()[1], flush=True); time.sleep(60)' > "$demo/port" &
running="$running $!"
while ! [ -s "$demo/port" ]; do sleep 0.05; done

contained 'read an SSH key' "cat $demo/home/.ssh/id_ed25519"
contained 'write outside the workspace' "echo planted > $demo/home/.bashrc"
contained 'see a process outside' "kill -0 $other"
contained 'reach a service on this machine' \
	"/usr/bin/python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", $(cat "$demo/port")), 2)'"
contained 'list what this machine runs' "ls -d /proc/$other/exe"
contained 'make a namespace of its own' 'unshare --user true'

echo
echo "${bold}File tools, for an agent without a shell$plain"
echo "  \$ cordon file grep hello"
"$cordon" file grep hello > "$demo/out" 2>&1 || wrong=1
sed 's/^/    /' "$demo/out"
ln -s "$demo/home/.ssh/id_ed25519" notes.txt
if "$cordon" file read notes.txt > "$demo/out" 2>&1 || grep -q 'not a real key' "$demo/out"; then
	printf '  %s%-10s%s %s\n' "$red" ESCAPED "$plain" 'read through a link that leaves' && wrong=1
else
	printf '  %s%-10s%s %s: %s\n' "$green" contained "$plain" 'read through a link that leaves' "$(head -n 1 "$demo/out" | cut -c 1-90)"
fi

echo
echo "${bold}A key that a command prints, or a file tool reads$plain"
key="ghp""_R7kW2mZx9QvT4nLb8YcJ5hGd1PsF6aE3uIoK"
echo "token = $key" > "$demo/project/settings"
echo '  $ cordon run --secrets redact -- cat settings       (the default of sessions, jobs and --json)'
"$cordon" run --secrets redact -- cat settings > "$demo/out" 2>&1 || wrong=1
grep -q REDACTED "$demo/out" && ! grep -q "$key" "$demo/out" || wrong=1
sed 's/^/    /' "$demo/out"
echo '  $ cordon file read settings'
"$cordon" file read settings > "$demo/out" 2>&1 || wrong=1
grep -q REDACTED "$demo/out" && ! grep -q "$key" "$demo/out" || wrong=1
head -n 1 "$demo/out" | sed 's/^/    /'

echo
echo "${bold}What a program that calls cordon gets$plain"
echo "  \$ cordon run --json -- echo done"
"$cordon" run --json -- echo done > "$demo/out" 2>&1 || wrong=1
sed 's/,"/, "/g' "$demo/out" | fold -s -w 110 | sed 's/^/    /; s/ $//'
echo
echo 'What holds on this machine, wall by wall: build/cordon doctor'
exit $wrong
