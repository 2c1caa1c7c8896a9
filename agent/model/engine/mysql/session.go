package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// session is one connection of the driver. It is used without package database/sql and with contexts that never end:
// both start or wake goroutines for each statement, which takes as long as the statement itself. Instead, the network
// connection has the context's deadline.
type session struct {
	driver driver.Conn
	net    net.Conn
}

// connector opens sessions.
type connector struct {
	driver.Connector
	dialled net.Conn // the last connection
}

func (c *connector) connect(ctx context.Context) (*session, error) {
	conn, err := c.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &session{conn, c.dialled}, nil
}

// within calls use with a context for the driver. If ctx ends, reading and writing fail.
func (s *session) within(ctx context.Context, use func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	deadline, limited := ctx.Deadline()
	err := s.net.SetDeadline(deadline) // the zero time is no deadline
	if err != nil {
		return driver.ErrBadConn // it is closed
	}
	defer func() { _ = s.net.SetDeadline(time.Time{}) }() // it would wake the process
	stop := context.AfterFunc(ctx, func() { _ = s.net.SetDeadline(time.Unix(1, 0)) })
	err = use(context.WithoutCancel(ctx))
	switch {
	case !stop(): // the deadline may be set at any time
		_ = s.net.Close()
		if err == nil || !answered(err) {
			err = ctx.Err()
		}
	case err != nil && !answered(err) && limited && !time.Now().Before(deadline): // the driver hides the cause
		err = context.DeadlineExceeded
	}
	return err
}

// query calls read with the rows of an answer.
func (s *session) query(ctx context.Context, statement string, read func(driver.Rows) error) error {
	return s.within(ctx, func(ctx context.Context) error {
		rows, err := s.driver.(driver.QueryerContext).QueryContext(ctx, statement, nil)
		if err != nil {
			return err
		}
		err = read(rows)
		if closeErr := rows.Close(); err == nil {
			err = closeErr
		}
		return err
	})
}

func (s *session) execute(ctx context.Context, statement string) error {
	return s.within(ctx, func(ctx context.Context) error {
		_, err := s.driver.(driver.ExecerContext).ExecContext(ctx, statement, nil)
		return err
	})
}

func (s *session) ping(ctx context.Context) error {
	return s.within(ctx, s.driver.(driver.Pinger).Ping)
}

// Close tells the server that the connection ends, which takes at most ioTimeout.
func (s *session) Close() error {
	_ = s.net.SetDeadline(time.Now().Add(ioTimeout)) // it may be closed already
	return s.driver.Close()
}

// eachRow calls read for each row of an answer. The values are valid until it returns.
func eachRow(rows driver.Rows, read func(values []driver.Value) error) error {
	values := make([]driver.Value, len(rows.Columns()))
	for {
		err := rows.Next(values)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = read(values)
		}
		if err != nil {
			return err
		}
	}
}

// appendText appends a value as the driver's numbers print; NULL is empty.
func appendText(to []byte, value driver.Value) []byte {
	switch v := value.(type) {
	case nil:
		return to
	case []byte:
		return append(to, v...)
	case int64:
		return strconv.AppendInt(to, v, 10)
	case uint64:
		return strconv.AppendUint(to, v, 10)
	case float32:
		return strconv.AppendFloat(to, float64(v), 'g', -1, 32)
	case float64:
		return strconv.AppendFloat(to, v, 'g', -1, 64)
	}
	return fmt.Append(to, value)
}
