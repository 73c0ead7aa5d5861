# Runs what the hub sends in this shell: a line with a number and how many lines follow, and those.
# Marks on both streams tell the hub where an execution begins and ends. They have descriptors of
# their own, since code may lead its output elsewhere; the next execution has the streams again.
exec 9<&0 8>&1 7>&2 </dev/null
__holt=$0 __count=0
trap : INT
while IFS=' ' read -r -u 9 __id __lines; do
	mapfile -n "$__lines" -u 9 __code
	__count=$((__count + 1))
	printf '\036%s %s B %s\n' "$__holt" "$__id" "$__count" >&8
	printf '\036%s %s B %s\n' "$__holt" "$__id" "$__count" >&7
	eval "$(printf %s "${__code[@]}")" 9<&- 8>&- 7>&-
	__status=$?
	exec >&8 2>&7
	[ $__status = 0 ] || printf '\036%s %s E {"name":"ExitStatus","value":"%s","traceback":""}\n' \
		"$__holt" "$__id" "$__status" >&8
	printf '\036%s %s Z\n' "$__holt" "$__id" >&7
	printf '\036%s %s Z\n' "$__holt" "$__id" >&8
done
