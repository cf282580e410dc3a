-- Records on MS SQL Server 2016 and later, in the table of source document 003 under its own names. Times are UTC by the
-- server's clock, read and written as microseconds since 1970. :skew moves the clock, for tests. A batch waits for a row
-- for {lock_wait} milliseconds; that setting ends with the batch. Text is compared as bytes where it decides anything,
-- because = ignores trailing blanks.

-- name: schema_1
-- purpose: the table of source document 003, with what leases, tenants and fences need, and its indexes
CREATE TABLE [dbo].[IdempotencyKeys] (
  [Id] UNIQUEIDENTIFIER NOT NULL CONSTRAINT [DF_IdempotencyKeys_Id] DEFAULT NEWID(),
  [Key] NVARCHAR(1024) COLLATE Latin1_General_100_BIN2 NOT NULL,
  [Route] NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NULL,
  [HttpMethod] NVARCHAR(10) COLLATE SQL_Latin1_General_CP1_CS_AS NULL,
  [StatusCode] INT NULL,
  [ResponseBody] NVARCHAR(MAX) NULL,
  [ContentType] NVARCHAR(256) NULL,
  [CreatedAt] DATETIME2(7) NOT NULL CONSTRAINT [DF_IdempotencyKeys_CreatedAt] DEFAULT GETUTCDATE(),
  [ExpiresAt] DATETIME2(7) NOT NULL,
  [IsProcessed] BIT NOT NULL CONSTRAINT [DF_IdempotencyKeys_IsProcessed] DEFAULT 1,
  [ProcessingCompletedAt] DATETIME2(7) NULL,
  [Digest] BINARY(32) NOT NULL,
  [TenantId] NVARCHAR(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
  [ScopeName] NVARCHAR(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
  [Fingerprint] NVARCHAR(MAX) COLLATE Latin1_General_100_BIN2 NOT NULL,
  [State] VARCHAR(6) COLLATE Latin1_General_100_BIN2 NOT NULL,
  [Fence] BIGINT NOT NULL,
  [Attempt] INT NOT NULL,
  [AttemptId] NVARCHAR(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
  [Owner] NVARCHAR(512) NOT NULL CONSTRAINT [DF_IdempotencyKeys_Owner] DEFAULT N'',
  [LeaseUntil] DATETIME2(7) NOT NULL,
  [Outcome] VARBINARY(MAX) NULL,
  [Meta] NVARCHAR(MAX) NOT NULL CONSTRAINT [DF_IdempotencyKeys_Meta] DEFAULT N'',
  [Tags] NVARCHAR(MAX) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT [DF_IdempotencyKeys_Tags] DEFAULT N'',
  [AuditMeta] NVARCHAR(MAX) NULL,
  CONSTRAINT [PK_IdempotencyKeys] PRIMARY KEY CLUSTERED ([Id] ASC),
  CONSTRAINT [UX_IdempotencyKey_Composite] UNIQUE NONCLUSTERED ([Digest]),
  CONSTRAINT [CK_StatusCode_Valid] CHECK ([StatusCode] BETWEEN 100 AND 599),
  CONSTRAINT [CK_ExpiresAt_Greater_Than_CreatedAt] CHECK ([ExpiresAt] > [CreatedAt]),
  CONSTRAINT [CK_State_Valid] CHECK ([State] IN ('held', 'done', 'failed')),
  CONSTRAINT [CK_Attempt_Valid] CHECK ([Attempt] >= 1),
  CONSTRAINT [CK_Route_Valid] CHECK ([Route] LIKE N'/%' AND CHARINDEX(N'?', [Route]) = 0),
  CONSTRAINT [CK_HttpMethod_Valid]
    CHECK ([HttpMethod] IN (N'GET', N'POST', N'PUT', N'DELETE', N'PATCH', N'HEAD', N'OPTIONS')),
  CONSTRAINT [CK_ContentType_Valid] CHECK ([ContentType] LIKE N'[^/; ]%/[^/; ]%'),
  CONSTRAINT [CK_AuditMeta_Json] CHECK (ISJSON([AuditMeta]) = 1),
  CONSTRAINT [CK_Held_Open] CHECK (
    ([State] = 'held' AND [IsProcessed] = 0 AND [Outcome] IS NULL AND [ProcessingCompletedAt] IS NULL)
    OR ([State] <> 'held' AND [IsProcessed] = 1 AND [Outcome] IS NOT NULL AND [ProcessingCompletedAt] IS NOT NULL))
);
CREATE NONCLUSTERED INDEX [IX_IdempotencyKeys_ExpiresAt] ON [dbo].[IdempotencyKeys] ([ExpiresAt] ASC)
  INCLUDE ([Key], [IsProcessed]);
CREATE NONCLUSTERED INDEX [IX_IdempotencyKeys_Route_CreatedAt] ON [dbo].[IdempotencyKeys] ([Route], [CreatedAt] DESC)
  INCLUDE ([HttpMethod], [StatusCode], [IsProcessed]);
CREATE NONCLUSTERED INDEX [IX_IdempotencyKeys_Scope] ON [dbo].[IdempotencyKeys] ([TenantId], [ScopeName], [CreatedAt] DESC)

-- name: look
-- purpose: one record as it is, live or not
SET NOCOUNT ON;
DECLARE @skew BIGINT = :skew;
DECLARE @now DATETIME2(7) = DATEADD(MICROSECOND, CAST(@skew % 1000000 AS INT), DATEADD(SECOND, CAST(@skew / 1000000 % 86400 AS INT),
  DATEADD(DAY, CAST(@skew / 86400000000 AS INT), CAST(SYSUTCDATETIME() AS DATETIME2(6)))));
SELECT k.[Fingerprint], k.[State], k.[Fence], k.[Attempt], k.[AttemptId], DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), k.[LeaseUntil]),
       DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), k.[CreatedAt]), DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), k.[ExpiresAt]),
       DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), k.[ProcessingCompletedAt]), k.[Outcome], k.[ContentType],
       k.[Meta], k.[Owner], k.[Tags], k.[Route], k.[HttpMethod], k.[AuditMeta],
       DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), @now)
FROM [dbo].[IdempotencyKeys] AS k WHERE k.[Digest] = :digest

-- name: claim
-- purpose: take the record where that is allowed: one row with fence and attempt, else one with the record as it is
SET NOCOUNT ON;
SET LOCK_TIMEOUT {lock_wait};
DECLARE @digest BINARY(32) = :digest, @tenant NVARCHAR(255) = :tenant, @scope NVARCHAR(255) = :scope,
        @key NVARCHAR(1024) = :key, @fingerprint NVARCHAR(MAX) = :fingerprint, @attempt_id NVARCHAR(255) = :attempt_id,
        @owner NVARCHAR(512) = :owner, @lease_for BIGINT = :lease_for, @retain_for BIGINT = :retain_for,
        @route NVARCHAR(256) = :route, @http_method NVARCHAR(10) = :http_method, @tags NVARCHAR(MAX) = :tags,
        @audit_meta NVARCHAR(MAX) = :audit_meta;
DECLARE @skew BIGINT = :skew;
DECLARE @now DATETIME2(7) = DATEADD(MICROSECOND, CAST(@skew % 1000000 AS INT), DATEADD(SECOND, CAST(@skew / 1000000 % 86400 AS INT),
  DATEADD(DAY, CAST(@skew / 86400000000 AS INT), CAST(SYSUTCDATETIME() AS DATETIME2(6)))));
DECLARE @micros BIGINT = DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), @now);
DECLARE @lease_until DATETIME2(7) = DATEADD(MICROSECOND, CAST(@lease_for % 1000000 AS INT), DATEADD(SECOND, CAST(@lease_for / 1000000 % 86400 AS INT),
  DATEADD(DAY, CAST(@lease_for / 86400000000 AS INT), @now)));
DECLARE @expires_at DATETIME2(7) = DATEADD(MICROSECOND, CAST(@retain_for % 1000000 AS INT), DATEADD(SECOND, CAST(@retain_for / 1000000 % 86400 AS INT),
  DATEADD(DAY, CAST(@retain_for / 86400000000 AS INT), @now)));
DECLARE @taken TABLE ([Fence] BIGINT NOT NULL, [Attempt] INT NOT NULL);
IF NOT EXISTS (
  SELECT 1 FROM [dbo].[IdempotencyKeys] AS k
  WHERE k.[Digest] = @digest AND k.[ExpiresAt] > @now
    AND (k.[State] <> 'held' OR CAST(k.[Fingerprint] AS VARBINARY(MAX)) <> CAST(@fingerprint AS VARBINARY(MAX))
         OR (CAST(k.[AttemptId] AS VARBINARY(MAX)) <> CAST(@attempt_id AS VARBINARY(MAX))
             AND k.[LeaseUntil] > @now)))
BEGIN
  INSERT INTO [dbo].[IdempotencyKeys] ([Digest], [TenantId], [ScopeName], [Key], [Fingerprint], [State], [Fence],
    [Attempt], [AttemptId], [Owner], [LeaseUntil], [CreatedAt], [ExpiresAt], [IsProcessed], [Route], [HttpMethod],
    [Tags], [AuditMeta])
  OUTPUT inserted.[Fence], inserted.[Attempt] INTO @taken ([Fence], [Attempt])
  SELECT @digest, @tenant, @scope, @key, @fingerprint, 'held', @micros, 1, @attempt_id, @owner, @lease_until, @now,
         @expires_at, 0, @route, @http_method, @tags, NULLIF(@audit_meta, N'')
  WHERE NOT EXISTS (SELECT 1 FROM [dbo].[IdempotencyKeys] AS k WITH (UPDLOCK, HOLDLOCK) WHERE k.[Digest] = @digest);
  IF @@ROWCOUNT = 0
    UPDATE k SET
      k.[Fingerprint] = @fingerprint,
      k.[State] = 'held',
      k.[Fence] = CASE WHEN k.[State] = 'held' AND k.[ExpiresAt] > @now
                            AND CAST(k.[AttemptId] AS VARBINARY(MAX)) = CAST(@attempt_id AS VARBINARY(MAX)) THEN k.[Fence]
                       WHEN k.[Fence] >= @micros THEN k.[Fence] + 1 ELSE @micros END,
      k.[Attempt] = CASE WHEN k.[ExpiresAt] <= @now THEN 1
                         WHEN CAST(k.[AttemptId] AS VARBINARY(MAX)) = CAST(@attempt_id AS VARBINARY(MAX)) THEN k.[Attempt]
                         ELSE k.[Attempt] + 1 END,
      k.[ExpiresAt] = CASE WHEN CAST(k.[AttemptId] AS VARBINARY(MAX)) = CAST(@attempt_id AS VARBINARY(MAX))
                                AND k.[ExpiresAt] > @expires_at THEN k.[ExpiresAt] ELSE @expires_at END,
      k.[CreatedAt] = CASE WHEN k.[ExpiresAt] <= @now THEN @now ELSE k.[CreatedAt] END,
      k.[AttemptId] = @attempt_id,
      k.[Owner] = @owner,
      k.[LeaseUntil] = @lease_until,
      k.[ProcessingCompletedAt] = NULL,
      k.[IsProcessed] = 0,
      k.[StatusCode] = NULL,
      k.[ContentType] = NULL,
      k.[Outcome] = NULL,
      k.[ResponseBody] = NULL,
      k.[Meta] = N'',
      k.[Route] = @route,
      k.[HttpMethod] = @http_method,
      k.[Tags] = @tags,
      k.[AuditMeta] = NULLIF(@audit_meta, N'')
    OUTPUT inserted.[Fence], inserted.[Attempt] INTO @taken ([Fence], [Attempt])
    FROM [dbo].[IdempotencyKeys] AS k
    WHERE k.[Digest] = @digest
      AND (k.[ExpiresAt] <= @now
           OR (k.[State] = 'held' AND CAST(k.[Fingerprint] AS VARBINARY(MAX)) = CAST(@fingerprint AS VARBINARY(MAX))
               AND (k.[LeaseUntil] <= @now
                    OR CAST(k.[AttemptId] AS VARBINARY(MAX)) = CAST(@attempt_id AS VARBINARY(MAX)))));
END;
IF EXISTS (SELECT 1 FROM @taken)
  SELECT t.[Fence], t.[Attempt] FROM @taken AS t;
ELSE
  SELECT CAST(NULL AS BIGINT), CAST(NULL AS INT),
       k.[Fingerprint], k.[State], k.[Fence], k.[Attempt], k.[AttemptId], DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), k.[LeaseUntil]),
       DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), k.[CreatedAt]), DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), k.[ExpiresAt]),
       DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), k.[ProcessingCompletedAt]), k.[Outcome], k.[ContentType],
       k.[Meta], k.[Owner], k.[Tags], k.[Route], k.[HttpMethod], k.[AuditMeta],
       DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), @now)
  FROM [dbo].[IdempotencyKeys] AS k WHERE k.[Digest] = @digest

-- name: renew
-- purpose: move the holder's lease on
SET NOCOUNT ON;
SET LOCK_TIMEOUT {lock_wait};
DECLARE @digest BINARY(32) = :digest, @fence BIGINT = :fence, @attempt_id NVARCHAR(255) = :attempt_id, @lease_for BIGINT = :lease_for, @retain_for BIGINT = :retain_for;
DECLARE @skew BIGINT = :skew;
DECLARE @now DATETIME2(7) = DATEADD(MICROSECOND, CAST(@skew % 1000000 AS INT), DATEADD(SECOND, CAST(@skew / 1000000 % 86400 AS INT),
  DATEADD(DAY, CAST(@skew / 86400000000 AS INT), CAST(SYSUTCDATETIME() AS DATETIME2(6)))));
DECLARE @expires_at DATETIME2(7) = DATEADD(MICROSECOND, CAST(@retain_for % 1000000 AS INT), DATEADD(SECOND, CAST(@retain_for / 1000000 % 86400 AS INT),
  DATEADD(DAY, CAST(@retain_for / 86400000000 AS INT), @now)));
UPDATE k SET
  k.[LeaseUntil] = DATEADD(MICROSECOND, CAST(@lease_for % 1000000 AS INT), DATEADD(SECOND, CAST(@lease_for / 1000000 % 86400 AS INT),
  DATEADD(DAY, CAST(@lease_for / 86400000000 AS INT), @now))),
  k.[ExpiresAt] = CASE WHEN k.[ExpiresAt] > @expires_at THEN k.[ExpiresAt] ELSE @expires_at END
OUTPUT DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), @now), DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), inserted.[ExpiresAt])
FROM [dbo].[IdempotencyKeys] AS k
WHERE k.[Digest] = @digest AND k.[Fence] = @fence AND CAST(k.[AttemptId] AS VARBINARY(MAX)) = CAST(@attempt_id AS VARBINARY(MAX))
  AND k.[State] = 'held' AND k.[ExpiresAt] > @now

-- name: renew_many
-- purpose: move many leases on; tells of those that were, and passes over records that another transaction holds
SET NOCOUNT ON;
SET LOCK_TIMEOUT {lock_wait};
DECLARE @skew BIGINT = :skew;
DECLARE @now DATETIME2(7) = DATEADD(MICROSECOND, CAST(@skew % 1000000 AS INT), DATEADD(SECOND, CAST(@skew / 1000000 % 86400 AS INT),
  DATEADD(DAY, CAST(@skew / 86400000000 AS INT), CAST(SYSUTCDATETIME() AS DATETIME2(6)))));
DECLARE @asked TABLE ([Digest] BINARY(32) NOT NULL, [Fence] BIGINT NOT NULL, [AttemptId] NVARCHAR(255) NOT NULL,
  [LeaseFor] BIGINT NOT NULL, [RetainFor] BIGINT NOT NULL);
INSERT INTO @asked ([Digest], [Fence], [AttemptId], [LeaseFor], [RetainFor]) VALUES {leases};
UPDATE k SET
  k.[LeaseUntil] = DATEADD(MICROSECOND, CAST(a.[LeaseFor] % 1000000 AS INT), DATEADD(SECOND, CAST(a.[LeaseFor] / 1000000 % 86400 AS INT),
  DATEADD(DAY, CAST(a.[LeaseFor] / 86400000000 AS INT), @now))),
  k.[ExpiresAt] = CASE WHEN k.[ExpiresAt] > DATEADD(MICROSECOND, CAST(a.[RetainFor] % 1000000 AS INT), DATEADD(SECOND, CAST(a.[RetainFor] / 1000000 % 86400 AS INT),
  DATEADD(DAY, CAST(a.[RetainFor] / 86400000000 AS INT), @now))) THEN k.[ExpiresAt]
  ELSE DATEADD(MICROSECOND, CAST(a.[RetainFor] % 1000000 AS INT), DATEADD(SECOND, CAST(a.[RetainFor] / 1000000 % 86400 AS INT),
  DATEADD(DAY, CAST(a.[RetainFor] / 86400000000 AS INT), @now))) END
OUTPUT a.[Digest], a.[Fence], a.[AttemptId], DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), @now),
       DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), inserted.[ExpiresAt])
FROM [dbo].[IdempotencyKeys] AS k WITH (ROWLOCK, READPAST)
JOIN @asked AS a ON k.[Digest] = a.[Digest]
WHERE k.[Fence] = a.[Fence] AND CAST(k.[AttemptId] AS VARBINARY(MAX)) = CAST(a.[AttemptId] AS VARBINARY(MAX))
  AND k.[State] = 'held' AND k.[ExpiresAt] > @now

-- name: one_lease
-- purpose: one of many leases
(:digest{number}, :fence{number}, :attempt_id{number}, :lease_for{number}, :retain_for{number})

-- name: settle
-- purpose: the holder hands in a result or a failure that is kept
SET NOCOUNT ON;
SET LOCK_TIMEOUT {lock_wait};
DECLARE @digest BINARY(32) = :digest, @fence BIGINT = :fence, @attempt_id NVARCHAR(255) = :attempt_id, @retain_for BIGINT = :retain_for;
DECLARE @skew BIGINT = :skew;
DECLARE @now DATETIME2(7) = DATEADD(MICROSECOND, CAST(@skew % 1000000 AS INT), DATEADD(SECOND, CAST(@skew / 1000000 % 86400 AS INT),
  DATEADD(DAY, CAST(@skew / 86400000000 AS INT), CAST(SYSUTCDATETIME() AS DATETIME2(6)))));
UPDATE k SET
  k.[State] = :state, k.[IsProcessed] = 1, k.[ProcessingCompletedAt] = @now,
  k.[ExpiresAt] = DATEADD(MICROSECOND, CAST(@retain_for % 1000000 AS INT), DATEADD(SECOND, CAST(@retain_for / 1000000 % 86400 AS INT),
  DATEADD(DAY, CAST(@retain_for / 86400000000 AS INT), @now))),
  k.[Outcome] = :outcome, k.[ResponseBody] = :response_body, k.[ContentType] = :content_type,
  k.[StatusCode] = :status_code, k.[Meta] = :meta
OUTPUT DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), inserted.[ProcessingCompletedAt]), DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), inserted.[ExpiresAt])
FROM [dbo].[IdempotencyKeys] AS k
WHERE k.[Digest] = @digest AND k.[Fence] = @fence AND CAST(k.[AttemptId] AS VARBINARY(MAX)) = CAST(@attempt_id AS VARBINARY(MAX))
  AND k.[State] = 'held' AND k.[ExpiresAt] > @now

-- name: settled_by_me
-- purpose: whether a settle of this attempt was applied before, its reply lost
SET NOCOUNT ON;
DECLARE @digest BINARY(32) = :digest, @fence BIGINT = :fence, @attempt_id NVARCHAR(255) = :attempt_id;
DECLARE @skew BIGINT = :skew;
DECLARE @now DATETIME2(7) = DATEADD(MICROSECOND, CAST(@skew % 1000000 AS INT), DATEADD(SECOND, CAST(@skew / 1000000 % 86400 AS INT),
  DATEADD(DAY, CAST(@skew / 86400000000 AS INT), CAST(SYSUTCDATETIME() AS DATETIME2(6)))));
SELECT DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), k.[ProcessingCompletedAt]), DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), k.[ExpiresAt])
FROM [dbo].[IdempotencyKeys] AS k
WHERE k.[Digest] = @digest AND k.[Fence] = @fence AND CAST(k.[AttemptId] AS VARBINARY(MAX)) = CAST(@attempt_id AS VARBINARY(MAX))
  AND k.[State] = :state AND k.[ExpiresAt] > @now

-- name: release
-- purpose: the holder gives the work back
SET NOCOUNT ON;
SET LOCK_TIMEOUT {lock_wait};
DECLARE @digest BINARY(32) = :digest, @fence BIGINT = :fence, @attempt_id NVARCHAR(255) = :attempt_id;
DECLARE @skew BIGINT = :skew;
DECLARE @now DATETIME2(7) = DATEADD(MICROSECOND, CAST(@skew % 1000000 AS INT), DATEADD(SECOND, CAST(@skew / 1000000 % 86400 AS INT),
  DATEADD(DAY, CAST(@skew / 86400000000 AS INT), CAST(SYSUTCDATETIME() AS DATETIME2(6)))));
DELETE k
OUTPUT DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), @now), DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), @now)
FROM [dbo].[IdempotencyKeys] AS k
WHERE k.[Digest] = @digest AND k.[Fence] = @fence AND CAST(k.[AttemptId] AS VARBINARY(MAX)) = CAST(@attempt_id AS VARBINARY(MAX))
  AND k.[State] = 'held' AND k.[ExpiresAt] > @now

-- name: forget
-- purpose: remove one record, whoever holds it
SET NOCOUNT ON;
SET LOCK_TIMEOUT {lock_wait};
DECLARE @skew BIGINT = :skew;
DECLARE @now DATETIME2(7) = DATEADD(MICROSECOND, CAST(@skew % 1000000 AS INT), DATEADD(SECOND, CAST(@skew / 1000000 % 86400 AS INT),
  DATEADD(DAY, CAST(@skew / 86400000000 AS INT), CAST(SYSUTCDATETIME() AS DATETIME2(6)))));
DELETE k
OUTPUT CASE WHEN deleted.[ExpiresAt] > @now THEN DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), @now) END,
       DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), @now)
FROM [dbo].[IdempotencyKeys] AS k WHERE k.[Digest] = :digest

-- name: forget_where
-- purpose: remove the records of a tenant, a scope or a tag
SET NOCOUNT ON;
DELETE k FROM [dbo].[IdempotencyKeys] AS k WHERE {conditions};
SELECT @@ROWCOUNT

-- name: find
-- purpose: a page of live records, newest first
SET NOCOUNT ON;
DECLARE @skew BIGINT = :skew;
DECLARE @now DATETIME2(7) = DATEADD(MICROSECOND, CAST(@skew % 1000000 AS INT), DATEADD(SECOND, CAST(@skew / 1000000 % 86400 AS INT),
  DATEADD(DAY, CAST(@skew / 86400000000 AS INT), CAST(SYSUTCDATETIME() AS DATETIME2(6)))));
SELECT TOP (CAST(:limit AS INT)) k.[Digest], k.[TenantId], k.[ScopeName], k.[Key],
       k.[Fingerprint], k.[State], k.[Fence], k.[Attempt], k.[AttemptId], DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), k.[LeaseUntil]),
       DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), k.[CreatedAt]), DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), k.[ExpiresAt]),
       DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), k.[ProcessingCompletedAt]), CAST(NULL AS VARBINARY(MAX)), k.[ContentType],
       k.[Meta], k.[Owner], k.[Tags], k.[Route], k.[HttpMethod], k.[AuditMeta],
       DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2(7)), @now)
FROM [dbo].[IdempotencyKeys] AS k WHERE {conditions} ORDER BY k.[CreatedAt] DESC, k.[Digest] DESC

-- name: prune
-- purpose: delete one batch of what has expired, leaving alone what somebody else is at
SET NOCOUNT ON;
DECLARE @skew BIGINT = :skew;
DECLARE @now DATETIME2(7) = DATEADD(MICROSECOND, CAST(@skew % 1000000 AS INT), DATEADD(SECOND, CAST(@skew / 1000000 % 86400 AS INT),
  DATEADD(DAY, CAST(@skew / 86400000000 AS INT), CAST(SYSUTCDATETIME() AS DATETIME2(6)))));
WITH [Expired] AS (
  SELECT TOP (CAST(:limit AS INT)) k.[Id] FROM [dbo].[IdempotencyKeys] AS k WITH (UPDLOCK, READPAST, ROWLOCK)
  WHERE k.[ExpiresAt] <= @now ORDER BY k.[ExpiresAt])
DELETE FROM [Expired];
SELECT @@ROWCOUNT

-- name: lock_schema
-- purpose: one process at a time makes or upgrades the tables; the lock ends with the transaction
SET NOCOUNT ON;
DECLARE @locked INT;
EXEC @locked = sys.sp_getapplock @Resource = N'sameas_schema', @LockMode = 'Exclusive', @LockOwner = 'Transaction',
  @LockTimeout = 30000;
IF @locked < 0 THROW 50000, N'Another process is making the tables and does not finish.', 1

-- name: versions_there
-- purpose: whether the table of versions is there
SELECT OBJECT_ID(N'[dbo].[SameasSchema]')

-- name: versions_table
-- purpose: the table of migrations that were made
IF OBJECT_ID(N'[dbo].[SameasSchema]') IS NULL
CREATE TABLE [dbo].[SameasSchema] (
  [Version] INT NOT NULL CONSTRAINT [PK_SameasSchema] PRIMARY KEY,
  [MadeAt] DATETIME2(7) NOT NULL CONSTRAINT [DF_SameasSchema_MadeAt] DEFAULT SYSUTCDATETIME()
)

-- name: version_last
-- purpose: the last migration that was made
SELECT COALESCE(MAX(s.[Version]), 0) FROM [dbo].[SameasSchema] AS s

-- name: version_made
-- purpose: note a migration
INSERT INTO [dbo].[SameasSchema] ([Version]) VALUES (:version)

-- name: where_live
-- purpose: not expired
k.[ExpiresAt] > @now

-- name: where_expired
-- purpose: expired, and not pruned yet
k.[ExpiresAt] <= @now

-- name: where_tenant
-- purpose: of one tenant
k.[TenantId] = :tenant AND DATALENGTH(k.[TenantId]) = DATALENGTH(CAST(:tenant AS NVARCHAR(255)))

-- name: where_scope
-- purpose: of one kind of work
k.[ScopeName] = :scope AND DATALENGTH(k.[ScopeName]) = DATALENGTH(CAST(:scope AS NVARCHAR(255)))

-- name: where_state
-- purpose: held, done or failed
k.[State] = :state

-- name: where_route
-- purpose: of one endpoint
k.[Route] = :route

-- name: where_method
-- purpose: of one HTTP method
k.[HttpMethod] = :http_method

-- name: where_status
-- purpose: with one HTTP status
k.[StatusCode] = :status_code

-- name: where_tag
-- purpose: with one tag, whole
k.[Tags] <> N'' AND CHARINDEX(CAST(:tag AS NVARCHAR(MAX)), k.[Tags]) > 0

-- name: where_key_prefix
-- purpose: whose key begins so
CAST(LEFT(k.[Key], :key_length) AS VARBINARY(MAX)) = CAST(CAST(:key AS NVARCHAR(1024)) AS VARBINARY(MAX))

-- name: where_created_from
-- purpose: made at this time or later
k.[CreatedAt] >= DATEADD(MICROSECOND, CAST(CAST(:created_from AS BIGINT) % 1000000 AS INT), DATEADD(SECOND, CAST(CAST(:created_from AS BIGINT) / 1000000 % 86400 AS INT),
  DATEADD(DAY, CAST(CAST(:created_from AS BIGINT) / 86400000000 AS INT), CAST('1970-01-01' AS DATETIME2(7)))))

-- name: where_created_before
-- purpose: made before this time
k.[CreatedAt] < DATEADD(MICROSECOND, CAST(CAST(:created_before AS BIGINT) % 1000000 AS INT), DATEADD(SECOND, CAST(CAST(:created_before AS BIGINT) / 1000000 % 86400 AS INT),
  DATEADD(DAY, CAST(CAST(:created_before AS BIGINT) / 86400000000 AS INT), CAST('1970-01-01' AS DATETIME2(7)))))

-- name: where_after
-- purpose: further down the list than a cursor
(k.[CreatedAt] < DATEADD(MICROSECOND, CAST(CAST(:after_time AS BIGINT) % 1000000 AS INT), DATEADD(SECOND, CAST(CAST(:after_time AS BIGINT) / 1000000 % 86400 AS INT),
  DATEADD(DAY, CAST(CAST(:after_time AS BIGINT) / 86400000000 AS INT), CAST('1970-01-01' AS DATETIME2(7)))))
 OR (k.[CreatedAt] = DATEADD(MICROSECOND, CAST(CAST(:after_time AS BIGINT) % 1000000 AS INT), DATEADD(SECOND, CAST(CAST(:after_time AS BIGINT) / 1000000 % 86400 AS INT),
  DATEADD(DAY, CAST(CAST(:after_time AS BIGINT) / 86400000000 AS INT), CAST('1970-01-01' AS DATETIME2(7)))))
     AND k.[Digest] < CAST(:after_digest AS BINARY(32))))
