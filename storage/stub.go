package storage
import "context"
func (s *Source) planColumns(o ReadOptions) error { return nil }
func (s *Source) readParquet(ctx context.Context, part int, yield func(*Chunk) error) error {return nil}
func (s *Source) readArrow(ctx context.Context, part int, yield func(*Chunk) error) error {return nil}
