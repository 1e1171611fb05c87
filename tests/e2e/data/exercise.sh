#!/bin/bash
# Two hundred lines of ordinary shell: it must print the same inside and outside.
set -eu
shopt -s extglob nullglob
export LC_ALL=C

section() { printf '== %s\n' "$1"; }
fail() { echo "FAILED: $*" >&2; exit 1; }

work=$(mktemp -d)
cleaned=no
clean() {
	cleaned=yes
	rm -rf "$work"
}
trap clean EXIT

section functions
square() { local n=$1; echo $((n * n)); }
factorial() {
	local n=$1
	if ((n <= 1)); then echo 1; else echo $((n * $(factorial $((n - 1))))); fi
}
square 12
factorial 10
recurse() { [ "$1" -le 0 ] && { echo bottom; return; }; recurse $(($1 - 1)); }
recurse 50

section arithmetic
echo $((7 / 2)) $((7 % 2)) $((2 ** 20)) $((0x1f)) $((010)) $((1 << 12)) $((5 > 3 ? 1 : 0))
let 'x = 3, y = x * 2'
echo "$x $y"
for ((i = 0, total = 0; i <= 100; i++)); do ((total += i)) || true; done
echo "$total"

section strings
text='The quick brown fox.txt'
echo "${#text} ${text%.txt} ${text##* } ${text/quick/slow} ${text^^} ${text,,}"
echo "${text:4:5} ${unset_variable:-default} ${text:+set}"
printf '%05d|%-8s|%8s|%x|%q\n' 42 left right 255 'a b'
IFS=: read -r first second rest <<< "one:two:three:four"
echo "$first $second $rest"

section arrays
declare -a list=(pear apple fig)
list+=(date)
echo "${#list[@]} ${list[*]} ${list[-1]} ${!list[*]}"
mapfile -t sorted < <(printf '%s\n' "${list[@]}" | sort)
echo "${sorted[*]}"
declare -A map=([one]=1 [two]=2 [three]=3)
for key in $(printf '%s\n' "${!map[@]}" | sort); do echo "$key=${map[$key]}"; done

section pipes
seq 1 1000 | awk '{ sum += $1 } END { print sum }'
printf 'b\na\nc\na\n' | sort | uniq -c | sort -rn | head -1 | tr -s ' '
yes | head -n 5 | wc -l
set +e
yes | head -n 1 > /dev/null
echo "broken pipe ${PIPESTATUS[0]}"
set -e
set +e
false | true
echo "pipe status ${PIPESTATUS[*]}"
(set -o pipefail; false | true)
echo "pipefail $?"
set -e
{ echo to-out; echo to-err >&2; } 2>&1 | sort

section here-documents
name=world
cat << END
hello $name, $((1 + 1))
END
cat << 'END'
hello $name, $((1 + 1))
END
cat <<- END
	tabs removed
END
tr a-z A-Z <<< "here string"

section files
mkdir -p "$work/deep/er/still"
cd "$work"
for n in 1 2 3 10; do echo "file $n" > "file$n.txt"; done
touch .hidden 'with space' $'with\nnewline' -- -dash
echo *.txt
echo file?.txt
echo file+([0-9]).txt
echo !(*.txt|deep) | tr '\n' '/'
echo
ls -A | wc -l
find . -name 'file*.txt' -newer .hidden | sort | wc -l
find . -type f -name '*.txt' -exec cat {} + | sort
ln -s file1.txt link && readlink link && cat link
ln file2.txt hard && [ file2.txt -ef hard ] && echo same inode
chmod 600 file3.txt && stat -c %a file3.txt
cp -a deep copy && mv copy moved && test -d moved/er/still && echo moved
tar cf - file*.txt | tar tf - | sort
echo 'a,b,c' | cut -d, -f2
sed -n 's/file \([0-9]*\)/\1/p' file10.txt
grep -c file file1.txt
rm -- -dash
exec 5> log; echo line one >&5; echo line two >&5; exec 5>&-
wc -l < log
exec 6< log; read -r line <&6; echo "$line"; exec 6<&-
set -C
if (echo x > log) 2> /dev/null; then fail clobbered; else echo noclobber; fi
set +C

section text-tools
cat > table << END
name,count,price
apple,3,1.20
pear,10,0.80
fig,7,2.50
END
awk -F, 'NR > 1 { total += $2 * $3 } END { printf "%.2f\n", total }' table
sort -t, -k2 -n table | cut -d, -f1 | paste -sd ' '
sed -e '1d' -e 's/,/ /g' table | while read -r fruit count price; do echo "$fruit:$count:$price"; done
join -t, <(sort table) <(printf 'apple,red\nfig,green\n') | head -2
tail -n +2 table | tac | nl -w1 -s. | head -1
od -An -tx1 <<< AZ | tr -d ' '
base64 <<< 'some bytes' | base64 -d
sha256sum < /dev/null | cut -c1-16
split -l 2 table part. && cat part.* | cmp - table && echo split and joined
comm -12 <(printf 'a\nb\nc\n') <(printf 'b\nc\nd\n') | paste -sd,
printf 'x%.0s' {1..20}; echo
echo {a,b}{1..3}
expr 6 \* 7
basename /a/b/c.txt .txt; dirname /a/b/c.txt
gzip -c table | gunzip | wc -c
tee copy1 < table | md5sum | cut -c1-8
head -c 5 /dev/zero | tr '\0' '.'; echo
[ -r /dev/urandom ] && head -c 16 /dev/urandom | wc -c
fold -w 8 <<< abcdefghijkl
env -i PATH="$PATH" sh -c 'echo "${HOME:-no home}"'
timeout 0.1 sleep 5 || echo "timeout $?"

section jobs
for n in 3 1 2; do (sleep "0.0$n"; echo "$n" > "job$n") & done
wait
cat job1 job2 job3
(: > started; exec sleep 30) &
pid=$!
until [ -e started ]; do sleep 0.01; done   # bash loses a signal that meets its child before the child is ready
kill -TERM "$pid"
set +e
wait "$pid"
echo "killed $?"
set -e
coproc UPPER { tr a-z A-Z; }
upper=$UPPER_PID
echo "through a coprocess" >&"${UPPER[1]}"
eval "exec ${UPPER[1]}>&-"
cat <&"${UPPER[0]}"
wait "$upper" || true
mkfifo pipe
echo through-a-fifo > pipe &
cat pipe
wait

section traps
bash -c 'trap "echo caught USR1" USR1; kill -USR1 $$; echo after'
bash -c 'trap "echo leaving; exit 3" TERM; (sleep 0.05; kill -TERM $$) & wait; echo unreachable' || echo "status $?"
(trap 'echo subshell ends' EXIT; exit 4) || echo "subshell $?"
bash -c 'set -e; trap "echo ERR at \$BASH_COMMAND" ERR; false; echo unreachable' || echo "errexit $?"

section getopts
parse() {
	local OPTIND=1 option verbose=0 output=
	while getopts ':vo:' option; do
		case $option in
		v) verbose=$((verbose + 1)) ;;
		o) output=$OPTARG ;;
		:) echo "missing value for -$OPTARG"; return 1 ;;
		*) echo "unknown -$OPTARG"; return 1 ;;
		esac
	done
	shift $((OPTIND - 1))
	echo "verbose=$verbose output=$output rest=$*"
}
parse -v -v -o file a b
parse -o || true
parse -x || true

section control
case file.tar.gz in *.zip) echo zip ;; *.tar.*) echo tarball ;;& *.gz) echo gzipped ;; esac
n=0
until ((n >= 3)); do n=$((n + 1)); [ $n = 2 ] && continue; echo "n $n"; done
for word in a b c d; do [ "$word" = c ] && break; echo "$word"; done
if [[ abc123 =~ ^([a-z]+)([0-9]+)$ ]]; then echo "${BASH_REMATCH[1]}-${BASH_REMATCH[2]}"; fi
select_first() { local PS3=; select choice in x y; do echo "chose $choice"; break; done 2> /dev/null <<< 2; }
select_first
eval 'echo evaluated'
echo "$(echo nested $(echo substitution))"
diff <(printf '1\n2\n') <(printf '1\n3\n') | tail -2 || true
read -r -t 1 answer <<< "in time" && echo "$answer"
xargs -n 2 echo < <(printf '%s ' 1 2 3 4)
( ulimit -c 0; ulimit -c )
umask 027; touch masked; stat -c %a masked
date -u -d @86400 +%Y-%m-%d
echo 'scale=3; 22/7' | { command -v bc > /dev/null && bc || echo 3.142; }
test -w "$HOME" && echo "home is writable"
[ "$cleaned" = no ] && echo done
