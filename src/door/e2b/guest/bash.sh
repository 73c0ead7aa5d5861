# Runs what the hub sends in this shell: a line with a number and how many lines follow, and those.
# Marks on both streams tell the hub where an execution begins and ends. They have descriptors of
# their own, since code may lead its output elsewhere; the next execution has the streams again.
# An end is in the loop's condition, and the loop in another: code may say continue and break.
# No command substitution, which an interruption may make the end of the shell.
exec 9<&0 8>&1 7>&2 </dev/null
__holt=$0 __count=0 __id=
trap : INT
while :; do
	while
		__status=$?
		exec >&8 2>&7
		if [ "$__id" ]; then
			[ $__status = 0 ] ||
				printf '\036%s %s E {"name":"ExitStatus","value":"%s","traceback":""}\n' \
					"$__holt" "$__id" "$__status" >&8
			printf '\036%s %s Z\n' "$__holt" "$__id" >&7
			printf '\036%s %s Z\n' "$__holt" "$__id" >&8
		fi
		IFS=' ' read -r -u 9 __id __lines || exit 0
	do
		mapfile -n "$__lines" -u 9 __code
		printf -v __text %s "${__code[@]}"
		__count=$((__count + 1))
		printf '\036%s %s B %s\n' "$__holt" "$__id" "$__count" >&7
		printf '\036%s %s B %s\n' "$__holt" "$__id" "$__count" >&8
		eval "$__text" 9<&- 8>&- 7>&-
	done
done
