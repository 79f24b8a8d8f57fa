package sqlsink

import (
	"context"
	"fmt"

	"github.com/staunchdev/staunch/connector"
)

// Renew implements connector.Renewer.
func (s *UpsertSink[T]) Renew(ctx context.Context, i connector.Instance) (string, error) {
	if s.t.Renew == "" {
		return fmt.Sprintf("rows of table %s stay until they are overwritten by key", s.t.Name), nil
	}
	return renew(ctx, s.t, i)
}

// Renew implements connector.Renewer.
func (s *LedgerSink[T]) Renew(ctx context.Context, i connector.Instance) (string, error) {
	if s.t.Renew == "" {
		return fmt.Sprintf("rows of table %s stay; the new ones come beside them", s.t.Name), nil
	}
	return renew(ctx, s.t, i)
}

// renew runs the user's statement. The fence is raised first, so that an older
// process does not write behind it.
func renew(ctx context.Context, t Table, i connector.Instance) (string, error) {
	if err := begin(ctx, t, i); err != nil {
		return "", err
	}
	db, err := acquire(t)
	if err != nil {
		return "", err
	}
	defer db.release()
	r, err := db.ExecContext(ctx, t.Renew)
	if err != nil {
		return "", fmt.Errorf("table %s: %s: %w", t.Name, t.Renew, err)
	}
	n, err := r.RowsAffected()
	if err != nil {
		return fmt.Sprintf("%s was run on table %s", t.Renew, t.Name), nil
	}
	return fmt.Sprintf("%s was run on table %s: %d rows", t.Renew, t.Name, n), nil
}
