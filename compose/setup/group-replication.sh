#!/bin/bash
# Forms a group of gr1, gr2 and gr3. Members outside of the group join. If there is no
# group, the member with the most transactions bootstraps it. Runs in MySQL's image at
# each start of the stack.
set -euo pipefail

# Passes passwords in a file and on standard input, not on the command line.
options=$(mktemp)
trap 'rm -f "$options"' EXIT
printf '[client]\nuser = root\npassword = %s\n' "$(</secrets/root-password)" >"$options"
replication=$(</secrets/replication-password)

sql() { mysql --defaults-extra-file="$options" --host="$1" --batch --skip-column-names; }
state() { sql "$1" <<<"SELECT member_state FROM performance_schema.replication_group_members WHERE member_id = @@server_uuid"; }
transactions() { sql "$1" <<<"SELECT @@GLOBAL.gtid_executed" | tr -d '\n'; }

# ahead A B: whether A has transactions that B lacks.
ahead() { [[ $(sql "$1" <<<"SELECT GTID_SUBSET('$(transactions "$1")', '$(transactions "$2")')") == 0 ]]; }

members=(gr1 gr2 gr3) first='' begun=no
for member in "${members[@]}"; do
	sql "$member" <<<"CHANGE REPLICATION SOURCE TO SOURCE_USER = 'replication', SOURCE_PASSWORD = '$replication' FOR CHANNEL 'group_replication_recovery'" 2>/dev/null || true
	[[ $(state "$member") != ONLINE ]] || begun=yes
done
if [[ $begun == no ]]; then
	first=gr1
	for member in gr2 gr3; do
		! ahead "$member" "$first" || first=$member
	done
	echo "$first begins the group"
	sql "$first" <<-'END'
		STOP GROUP_REPLICATION;
		SET GLOBAL group_replication_bootstrap_group = ON;
		START GROUP_REPLICATION;
		SET GLOBAL group_replication_bootstrap_group = OFF;
	END
	# Executed in the group, so that it is replicated to all members.
	sql "$first" <<<'CREATE DATABASE IF NOT EXISTS sbtest'
fi
for member in "${members[@]}"; do
	case $(state "$member") in
	ONLINE | RECOVERING) ;;
	*)
		echo "$member joins"
		sql "$member" <<<'STOP GROUP_REPLICATION; START GROUP_REPLICATION'
		;;
	esac
done
for member in "${members[@]}"; do
	for ((i = 0; i < 60; i++)); do
		[[ $(state "$member") != ONLINE ]] || continue 2
		sleep 1
	done
	echo "$member is $(state "$member") after a minute: see docker compose logs $member" >&2
	exit 1
done
