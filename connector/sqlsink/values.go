package sqlsink

import (
	"bytes"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// values turns what a row function returned into driver values that do not
// alias the record.
func (t Table) values(record any, row []any) ([]any, error) {
	if len(row) != len(t.Columns) {
		return nil, fmt.Errorf("sqlsink: %d values for the %d columns %q of table %s, record %.300s",
			len(row), len(t.Columns), t.Columns, t.Name, fmt.Sprintf("%+v", record))
	}
	for i, v := range row {
		v, err := driver.DefaultParameterConverter.ConvertValue(v)
		if err != nil {
			return nil, fmt.Errorf("sqlsink: column %q of table %s: %w, record %.300s", t.Columns[i], t.Name, err, fmt.Sprintf("%+v", record))
		}
		if b, ok := v.([]byte); ok {
			v = bytes.Clone(b)
		}
		row[i] = v
	}
	return row, nil
}

// appendKey appends an encoding of v that is equal for equal values, unequal for
// others whatever follows, and orders rows the same way in every writer.
func appendKey(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case int64:
		return binary.BigEndian.AppendUint64(append(dst, 'i'), uint64(v)^1<<63), nil
	case float64:
		return binary.BigEndian.AppendUint64(append(dst, 'f'), math.Float64bits(v)), nil
	case bool:
		if v {
			return append(dst, 'b', 1), nil
		}
		return append(dst, 'b', 0), nil
	case string:
		return append(binary.BigEndian.AppendUint32(append(dst, 's'), uint32(len(v))), v...), nil
	case []byte:
		return append(binary.BigEndian.AppendUint32(append(dst, 'x'), uint32(len(v))), v...), nil
	case time.Time:
		dst = binary.BigEndian.AppendUint64(append(dst, 't'), uint64(v.Unix())^1<<63)
		return binary.BigEndian.AppendUint32(dst, uint32(v.Nanosecond())), nil
	case nil:
		// NULL equals nothing in a unique key, so a replay would add a second row.
		return nil, fmt.Errorf("is NULL")
	}
	return nil, fmt.Errorf("has a value of type %T", v)
}
