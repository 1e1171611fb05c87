# What the scripts of steps are made of. $who: user or root; $base: the world that is aimed at.
results=/vm/results/$who

# With the time, to tell which step was slow; the last line of the console is the last step that ended
verdict() {
	read -r now _ </proc/uptime
	echo $1 $now >$results/$id.status
	echo "$who $id: $1 at $now"
}

# ID DIRECTORY WORD…: runs it, and keeps what it said
step() {
	id=$1
	cd "$2" || return
	shift 2
	"$@" </dev/null >$results/$id.out 2>$results/$id.err
	verdict $?
}

# The same with files as its standard streams
files() {
	id=$1
	cd "$2" || return
	shift 2
	for number in 0 1 2; do
		: >$base/stdio-$number
		chmod 0600 $base/stdio-$number
	done
	"$@" <>$base/stdio-0 1<>$base/stdio-1 2<>$base/stdio-2
	verdict $?
	cp $base/stdio-1 $results/$id.out
	cp $base/stdio-2 $results/$id.err
}

workspace() { # in place of the one before: they are in memory
	rm -rf $base/w[0-9]* $base/outside/made* $base/outside/moved-out $base/home/.npm/_cacache/planted $base/outside/tmpfile $base/outside/fifo $base/outside/directory \
		$base/granted/made $base/around/data/cordon/planted /cordon-walls-made /tmp/cordon-walls* /dev/shm/copy*
	cp -p /vm/template-$who/outside/* $base/outside
	cp -a /vm/template-$who/workspace $base/$1
	ln $base/socket $base/$1/socket
}

world() { # TEXT UNIQUE PORT
	guest world $base "$@" >$base/names &
	until grep -q ready $base/names; do usleep 10000; done
	. $base/names
	for kind in pid net cgroup; do eval "ns_$kind='$(readlink /proc/self/ns/$kind)'"; done
	cd $base/outside
	echo -n "$1" | HOME=$base/home XDG_DATA_HOME=$base/around/data cordon run --session other -c 'cat >secret'
	other_session=$(echo $base/around/data/cordon/workspaces/*)
	ledger=$(echo $base/around/data/cordon/ledger/*.jsonl)
}
