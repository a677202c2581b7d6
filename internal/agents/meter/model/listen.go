package model

import (
	"net"
	"sync"
)

// limitConns returns a listener with at most n open connections.
func limitConns(l net.Listener, n int) net.Listener {
	return &boundedListener{Listener: l, slots: make(chan struct{}, n), closed: make(chan struct{})}
}

type boundedListener struct {
	net.Listener

	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

// Accept waits for a free slot.
func (b *boundedListener) Accept() (net.Conn, error) {
	select {
	case b.slots <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	conn, err := b.Listener.Accept()
	if err != nil {
		<-b.slots
		return nil, err
	}
	return &boundedConn{Conn: conn, slots: b.slots}, nil
}

// Close also ends a wait for a slot.
func (b *boundedListener) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

type boundedConn struct {
	net.Conn

	slots chan struct{}
	once  sync.Once
}

// Close gives the slot back.
func (b *boundedConn) Close() error {
	defer b.once.Do(func() { <-b.slots })
	return b.Conn.Close()
}
