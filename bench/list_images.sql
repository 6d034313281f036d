-- A million images as a catalogue grows them: first the clean ones, then each attack's import after the other, so that
-- most conditions hold for neighbouring ids only. 20 attacks x 5 target models; one modified image in 200 has no answer.
-- %(clean)s clean images and as many modified ones.

-- The rows keep all rules; checking each of them again would only take longer.
SET LOCAL session_replication_role = replica;

INSERT INTO imagedb_attack (name, slug, family, description, threat_model, is_targeted, parameters, paper_title,
                            paper_url, code_url, bibtex, venue, year, is_demo, created_at)
SELECT 'Attack ' || n, 'attack-' || n, (ARRAY['colour', 'texture', 'geometric', 'generative', 'other'])[1 + n %% 5],
       'Changes what the ' || (ARRAY['hue', 'grain', 'shape', 'latent', 'palette'])[1 + n %% 5] || ' of it is', '',
       NULL, '{}', '', '', '', '', '', 2020 + n %% 5, false, now()
FROM generate_series(1, 20) n;

INSERT INTO imagedb_targetmodel (name, slug, architecture, training, source, weights_reference, preprocessing, dataset,
                                 clean_accuracy, description, is_demo, created_at)
SELECT name, lower(name), name, '', '', '', '', 'ImageNet-1k', 0.8, '', false, now()
FROM unnest(ARRAY['ResNet50', 'ViT', 'Swin', 'ConvNeXt', 'VGG19']) name;

INSERT INTO auth_group (name) VALUES ('Lab');

CREATE TEMP TABLE numbered_attack AS SELECT id, row_number() OVER (ORDER BY id) - 1 AS number FROM imagedb_attack;
CREATE TEMP TABLE numbered_model AS SELECT id, row_number() OVER (ORDER BY id) - 1 AS number FROM imagedb_targetmodel;
CREATE TEMP TABLE numbered_class AS SELECT id, index AS number FROM imagedb_imageclass;

-- Visibility: 60 %% registered, 37 %% public, 3 %% private of the group. Classes are spread evenly.
INSERT INTO imagedb_image (id, public_id, kind, image_class_id, original, original_filename, original_sha256,
    original_bytes, original_format, original_mode, original_profile, original_crc32, rendition, rendition_sha256,
    rendition_bytes, rendition_crc32, width, height, thumbnail, comparison, verified, visibility, licence,
    attribution, is_demo, group_id, created_at)
SELECT n, gen_random_uuid(), 'clean', c.id, 'original/aa/' || md5(n::text) || '.jpg',
    'ILSVRC2012_val_' || lpad(n::text, 8, '0') || '.JPEG', encode(sha256(n::text::bytea), 'hex'),
    100000 + n %% 5000, 'JPEG', 'RGB', '', n, 'rendition/aa/' || md5(n::text) || '.png',
    encode(sha256(n::text::bytea), 'hex'), 300000, n, 500, 375, 'thumbnail/aa/' || md5(n::text) || '.jpg', '', true,
    (CASE WHEN abs(hashint8(n)::bigint) %% 100 >= 40 THEN 'registered' WHEN abs(hashint8(n)::bigint) %% 100 BETWEEN 37 AND 39 THEN 'private'
     ELSE 'public' END),
    'ImageNet terms', CASE WHEN n %% 10000 = 0 THEN 'Photographer ' || n ELSE '' END, false,
    CASE WHEN abs(hashint8(n)::bigint) %% 100 BETWEEN 37 AND 39 THEN (SELECT min(id) FROM auth_group WHERE name = 'Lab') END, now()
FROM generate_series(1, %(clean)s) n JOIN numbered_class c ON c.number = n %% 1000;

INSERT INTO imagedb_image (id, public_id, kind, image_class_id, source_id, attack_id, target_model_id, original,
    original_filename, original_sha256, original_bytes, original_format, original_mode, original_profile,
    original_crc32, rendition, rendition_sha256, rendition_bytes, rendition_crc32, width, height, thumbnail,
    comparison, linf, l2, changed_share, ssim, ciede2000, verified, visibility, licence, attribution, is_demo, group_id,
    created_at)
SELECT %(clean)s + n, gen_random_uuid(), 'modified', s.image_class_id, s.id, a.id, m.id,
    'original/bb/' || md5(n::text) || '.png', 'attack' || a.number || '_' || m.number || '_' || n || '.png',
    encode(sha256(('m' || n)::bytea), 'hex'), 200000 + n %% 5000, 'PNG', 'RGB', '', n,
    'rendition/bb/' || md5(n::text) || '.png', encode(sha256(('m' || n)::bytea), 'hex'), 300000, n, 500, 375,
    'thumbnail/bb/' || md5(n::text) || '.jpg', 'same_size', least(255, 1 + (a.number * 12 + 30 * random())::int),
    -ln(random()) * 8, random(), 1 - random() * 0.5, -ln(random()) * 4, (%(clean)s + n) %% 200 <> 0, s.visibility, 'ImageNet terms', '', false,
    s.group_id, now()
FROM generate_series(1, %(clean)s) n
JOIN numbered_attack a ON a.number = (n - 1) * 20 / %(clean)s
JOIN numbered_model m ON m.number = n %% 5
JOIN imagedb_image s ON s.id = 1 + (n * 7919::bigint) %% %(clean)s;

-- Every clean image was shown to two models, which are right; a modified one to its own.
INSERT INTO imagedb_prediction (image_id, target_model_id, predicted_class_id, confidence)
SELECT i.id, m.id, i.image_class_id, 1 - random() ^ 2
FROM imagedb_image i JOIN numbered_model m ON m.number IN (0, 1) WHERE i.kind = 'clean';
INSERT INTO imagedb_prediction (image_id, target_model_id, predicted_class_id, confidence)
SELECT i.id, i.target_model_id, other.id, 1 - random() ^ 2
FROM imagedb_image i
JOIN numbered_class own ON own.id = i.image_class_id
JOIN numbered_class other ON other.number = (own.number + 1) %% 1000
WHERE i.kind = 'modified' AND i.id %% 200 <> 0;

-- A collection of 5,000 images and one of nearly all.
INSERT INTO imagedb_collection (name, slug, description, visibility, is_demo, created_at)
VALUES ('Small', 'small', '', 'public', false, now()), ('Large', 'large', '', 'public', false, now());
INSERT INTO imagedb_collectionversion (collection_id, version, licence, citation, doi, changelog, image_count, manifest,
                                       manifest_sha256, created_at)
SELECT id, '1.0', '', '', '', '', 0, '', '', now() FROM imagedb_collection;
INSERT INTO imagedb_collectionimage (version_id, image_id)
SELECT v.id, i.id FROM imagedb_image i
JOIN imagedb_collection c ON (c.slug = 'small' AND i.id %% 200 = 7) OR (c.slug = 'large' AND i.id %% 20 <> 3)
JOIN imagedb_collectionversion v ON v.collection_id = c.id;
SELECT setval(pg_get_serial_sequence('imagedb_image', 'id'), 2 * %(clean)s);
