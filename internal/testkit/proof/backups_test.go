package proof

import "testing"

// TestCheckBackups is TestCheck for a Backup, which is restored to a free key
// alone. Items a and b share no bit.
func TestCheckBackups(t *testing.T) {
	const yes, no, isNew, did, first = true, false, true, true, true
	f, a, b, _ := sharing(t)
	mayHaveRun := Result{End: Taken, Tried: 2, Maybe: 1}
	begin := []one{
		call(2, 4, Add, told(isNew), a), call(6, 8, TakeBackup, told(first)), call(10, 12, Add, told(isNew), b),
	}
	removed := call(14, 16, Delete, told(did))
	for _, tt := range []struct {
		name  string
		right bool
		calls []one
	}{
		{"it has what was there", true, []one{
			removed, call(18, 20, RestoreBackup, told(did)), call(22, 24, ExistsAll, told(yes, no), a, b),
		}},
		{"it has what came later", false, []one{
			removed, call(18, 20, RestoreBackup, told(did)), call(22, 24, Exists, told(yes), b),
		}},
		{"half of it is there", false, []one{
			removed, call(18, 20, RestoreBackup, told(did)), call(22, 24, Exists, told(no), a),
		}},
		{"the key is taken", true, []one{call(18, 20, RestoreBackup, ended(Taken)), call(22, 24, Exists, told(yes), b)}},
		{"a free key is taken", false, []one{removed, call(18, 20, RestoreBackup, ended(Taken))}},
		{"over a filter", false, []one{call(18, 20, RestoreBackup, told(did))}},
		{"twice", false, []one{
			removed, call(18, 20, RestoreBackup, told(did)), call(22, 24, RestoreBackup, told(did)),
		}},
		{"it may have run, and did", true, []one{
			removed, call(18, 20, RestoreBackup, opened()), call(22, 24, Exists, told(yes), a),
		}},
		{"it may have run, and did not", true, []one{
			removed, call(18, 20, RestoreBackup, opened()), call(22, 24, Exists, ended(Missing), a),
		}},
		{"its first attempt ran, and the filter was removed", true, []one{
			removed, call(18, 40, RestoreBackup, mayHaveRun), call(20, 22, Exists, told(yes), a),
			call(24, 26, Delete, told(did)), call(28, 30, Add, told(isNew), b), call(42, 44, Exists, told(no), a),
		}},
		{"a later Backup", true, []one{
			call(13, 15, TakeBackup, told(no)), call(16, 18, Delete, told(did)),
			call(20, 22, RestoreBackup, told(did)), call(24, 26, Exists, told(no), b),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { check(t, f, tt.right, append(begin[:3:3], tt.calls...)) })
	}
}
