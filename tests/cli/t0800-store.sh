#!/bin/bash
# store: what is in one, what is wrong with one, and PROFILEs out of one.
. "$(dirname "$0")/lib.sh"

"$STORE_CLIENT" fill s.db 1 400 10000 >acks
runs 0 "info" heapgauge store info s.db
like "info: series with their labels" out 'instance="host:1"'
like "info: profiles" out '^800 profiles received'
runs 0 "info as JSON" heapgauge store info --json s.db
python3 -c 'import json,sys; d = json.load(open("out")); assert d["profiles"] == 800 and len(d["series"]) == 2 and d["tiers"]["5m"]["chunks"] > 0'
ok $? "info as JSON: it is JSON, and says the same"
runs 0 "check" heapgauge store check s.db
like "check: all can be read" out '^800 profiles can be read'

last=$(tail -1 acks | cut -d' ' -f4)
runs 0 "a PROFILE: the last one" heapgauge top --symbols none "store:s.db?target=host:1"
like "a PROFILE: as it was received" out 'http://somewhere/'
for mode in last average max; do
	runs 0 "a PROFILE of a range: $mode" heapgauge top --symbols none "store:s.db?target=host:1&from=0&mode=$mode"
	like "a PROFILE of a range: $mode: named by its target" out '^File: *host:1'
done
runs 0 "all that match" heapgauge top --symbols none "store:s.db?instance=~host:.&from=$((last / 1000 - 60))"
runs 0 "leaks" heapgauge leaks --symbols none "store:s.db?target=2&from=0"
like "leaks: over the moments of the range" out '^Series: *240 snapshots'
runs 0 "a difference of two times" heapgauge diff --symbols none "store:s.db?target=2&to=$((last / 1000 - 600))" "store:s.db?target=2"
runs 0 "times as people write them" heapgauge top --symbols none "store:s.db?target=2&to=2025-10-09T10:00:00%2b01:00&from=2025-10-09T08:55:00Z"

misused "leaks of two processes" "target=NUMBER" heapgauge leaks "store:s.db?from=0"
misused "leaks of two places" "give it alone" heapgauge leaks "store:s.db?target=2&from=0" "store:s.db?target=1&from=0"
misused "nobody" "no profile of what was asked for" heapgauge top "store:s.db?target=nobody:1"
misused "a time that is none" "a time is 2026-" heapgauge top "store:s.db?from=yesterday"
misused "a mode that is none" "last, average or max" heapgauge top "store:s.db?mode=sum"
misused "no pair" "is no key=value" heapgauge top "store:s.db?target"
misused "an expression that is none" "is no expression" heapgauge top "store:s.db?job=~("
fails "no store" "there is no store" heapgauge top "store:absent.db"
fails "something else" "not a store" heapgauge store info acks
misused "no action" "did you mean 'info'" heapgauge store inof s.db
misused "no directory" "-o DIRECTORY" heapgauge store export s.db

runs 0 "export" heapgauge store export s.db --target host:0 -o exported
[ "$(ls exported | wc -l)" -eq 400 ]
ok $? "export: a file for each profile"
heapgauge top --symbols none "exported/$(ls exported | tail -1)" 2>/dev/null | grep '^Total' >a
heapgauge top --symbols none "store:s.db?target=host:0" 2>/dev/null | grep '^Total' >b
[ -s a ] && cmp -s a b
ok $? "export: the same numbers" || diff a b | diagnose

# Of another program, and of a later one: not a byte is touched.
cp s.db foreign.db && printf '\0\0\0\1' | dd of=foreign.db bs=1 seek=68 conv=notrunc status=none
cp s.db newer.db && printf '\0\0\0\3' | dd of=newer.db bs=1 seek=60 conv=notrunc status=none
sha256sum foreign.db newer.db >before
fails "a foreign one" "not a store of heapgauge" heapgauge store compact foreign.db
fails "a newer one" "written by a newer heapgauge" heapgauge store compact newer.db
fails "a newer one isn't read either" "written by a newer heapgauge" heapgauge store info newer.db
sha256sum foreign.db newer.db | cmp -s - before
ok $? "foreign and newer ones are as they were"
[ ! -e foreign.db-wal ] && [ ! -e newer.db-wal ]
ok $? "and nothing lies beside them"

# A damaged chunk: named, and the rest is readable.
python3 - <<'END'
import sqlite3
db = sqlite3.connect("s.db")
id, data = db.execute("SELECT id, data FROM chunks WHERE tier = 0 AND series = 1 ORDER BY t0 LIMIT 1 OFFSET 3").fetchone()
bad = bytearray(data)
bad[len(bad) // 2] ^= 0x55
db.execute("UPDATE chunks SET data = ? WHERE id = ?", (bytes(bad), id))
db.commit()
END
heapgauge store check s.db >out 2>err
[ $? -eq 1 ] && grep -q "damaged, see above" err
ok $? "a damaged chunk fails the check"
like "a damaged chunk is named" out '^chunk [0-9]+: damaged'
like "a damaged chunk costs its five profiles" out '^795 profiles can be read'
runs 0 "the rest is exported" heapgauge store export s.db --target host:0 -o rest
[ "$(ls rest | wc -l)" -eq 395 ]
ok $? "the rest is exported: all of it"
like "what isn't is named" err 'series 1, chunk of'
runs 0 "compact" heapgauge store compact s.db
done_testing
