"""What writes events down."""
