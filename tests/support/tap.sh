# TAP for shell tests: `check NAME COMMAND...` is one case, `skip NAME REASON` too; `finish` prints the plan.
tap_count=0 tap_failed=0
check() {
	tap_count=$((tap_count + 1))
	tap_name=$1
	shift
	if tap_output=$("$@" 2>&1); then
		echo "ok $tap_count - $tap_name"
	else
		printf '%s\n' "$tap_output" | sed 's/^/# /'
		echo "not ok $tap_count - $tap_name"
		tap_failed=1
	fi
}
skip() {
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $1 # SKIP $2"
}
finish() {
	echo "1..$tap_count"
	exit $tap_failed
}
